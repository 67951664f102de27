"""How GPUs reach each other: links inside a domain, network cards between domains, and where it narrows further up.

A domain is the set of GPUs joined by NVLink (or by one host's PCIe): 8 in a DGX, 72 in an NVL72. Rates are per GPU and
per direction, as in "450 GB/s": data sheets often print both directions added, which is twice that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from stallwise.errors import BadRequest
from stallwise.physics.specs.cluster import Cluster


class Wiring(Enum):
    """What joins the GPUs of one domain."""

    SWITCH = "switch"  # every GPU reaches every other at full rate (NVSwitch)
    PAIRS = "pairs"  # bridges join two and two, the pairs meet over PCIe
    HOST = "host"  # everything crosses the host's PCIe


@dataclass(frozen=True, slots=True)
class Link:
    """One generation of GPU-to-GPU link with what a collective gets out of it.

    The latencies and efficiencies were fitted on the aiconfigurator NCCL tables of one GPU per generation (NCCL 2.23 to
    2.29, 2 to 8 ranks, 64 KB to 512 MB); the rates are the makers' figures.
    """

    name: str
    byte_per_s: float  # per GPU and direction
    efficiency_share: float  # of that rate which a ring of large messages reaches
    launch_s: float  # from the call to the first byte, and from the last byte to the end
    hop_s: float  # one step of the low-latency protocol


# NVLink 4 and 5 carry the same protocol overhead; the differences in latency are those of the measured machines.
NVLINK2 = Link("nvlink2", 150e9, 0.84, 12e-6, 1.4e-6)  # V100: not measured, scaled from the next
NVLINK3 = Link("nvlink3", 300e9, 0.84, 11.0e-6, 1.30e-6)
NVLINK4 = Link("nvlink4", 450e9, 0.93, 6.1e-6, 0.96e-6)
NVLINK5 = Link("nvlink5", 900e9, 0.875, 9.25e-6, 1.34e-6)
PCIE3 = Link("pcie3", 16e9, 0.65, 5.0e-6, 1.5e-6)
PCIE4 = Link("pcie4", 32e9, 0.65, 5.0e-6, 1.5e-6)
PCIE5 = Link("pcie5", 64e9, 0.65, 5.0e-6, 1.5e-6)
LINKS = (NVLINK2, NVLINK3, NVLINK4, NVLINK5)
HOST_LINKS = (PCIE3, PCIE4, PCIE5)
BRIDGE_EFFICIENCY_SHARE = 0.65  # two bridged cards: 183 of 300 and 190 of 300 GB/s (Vidur's pairwise profiles)


@dataclass(frozen=True, slots=True)
class Level:
    """Beyond this many GPUs traffic crosses a narrower part of the network."""

    gpus: int
    oversubscription_ratio: float  # 1 = full bisection; 4 = a crossing flow may get a quarter
    name: str = "pod"


@dataclass(frozen=True, slots=True)
class Fabric:
    """A cluster's network as a collective sees it."""

    link: Link
    gpus_per_domain: int = 8
    wiring: Wiring = Wiring.SWITCH
    host_byte_per_s: float = 64e9  # PCIe per GPU and direction: how pairs and switchless cards meet
    in_switch_reduction: bool = False  # NVLS: the NVSwitch adds up and multicasts (third generation and later)
    nic_byte_per_s: float = 50e9  # per GPU and direction: 400 Gb/s
    nic_efficiency_share: float = 0.94  # 46-48 of 50 GB/s are seen on InfiniBand (NVIDIA/nccl-tests #212, #290)
    nic_hop_s: float = 7.0e-6  # one network step of the low-latency protocol, GPU memory to GPU memory
    levels: tuple[Level, ...] = ()
    host_path: str = (
        ""  # what cards without a switch share: "switch" nothing, "root" one path, "sockets" two processors
    )
    wiring_stated: bool = True  # whether somebody said how cards without a switch are plugged in

    def __post_init__(self) -> None:
        if self.gpus_per_domain < 1:
            raise BadRequest("a domain needs at least one GPU", hint="gpus_per_domain=8 for a DGX, 72 for an NVL72")
        if self.nic_byte_per_s <= 0 or self.link.byte_per_s <= 0:
            raise BadRequest("a link rate must be above zero", hint="400 Gb/s per GPU is 50e9 bytes per second")

    def narrowing(self, gpus: int) -> float:
        """How much less a flow may get when the group spans this many GPUs."""
        return max((lv.oversubscription_ratio for lv in self.levels if gpus > lv.gpus), default=1.0)


def link_like(byte_per_s: float, *, host: bool = False) -> Link:
    """The known generation nearest to a rate, at exactly that rate."""
    known = HOST_LINKS if host else LINKS
    nearest = min(known, key=lambda link: abs(link.byte_per_s - byte_per_s) / link.byte_per_s)
    return replace(nearest, byte_per_s=byte_per_s)


def fabric_for(
    link_byte_per_s: float, *, gpus_per_domain: int = 8, nic_byte_per_s: float = 50e9, levels: tuple[Level, ...] = ()
) -> Fabric:
    """A switched fabric from the three rates people know; NVLS where the link's generation has it."""
    link = link_like(link_byte_per_s)
    return Fabric(
        link=link,
        gpus_per_domain=gpus_per_domain,
        in_switch_reduction=link.name in REDUCING_LINKS,
        nic_byte_per_s=nic_byte_per_s,
        levels=levels,
    )


REDUCING_LINKS = ("nvlink4", "nvlink5")  # the NVSwitches of Hopper and later add up in the switch
CARDS_WITHOUT_SWITCH = ("pcie", "nvl", "a40", "a6000")  # sold as cards: a bridge joins two of them at most


STAGED_SHARE = 0.5  # without peer access every byte stops in host memory and crosses the card's link twice


def fabric_of(cluster: Cluster) -> Fabric:
    """What a cluster's description says about its network."""
    card = cluster.gpu
    shared = STAGED_SHARE if cluster.peer_access is False else 1.0
    bridged = card.nvlink_byte_per_s > 0 and any(word in card.name for word in CARDS_WITHOUT_SWITCH)
    switched = card.nvlink_byte_per_s > 0 and not bridged
    levels: tuple[Level, ...] = ()
    if cluster.pod_gpus and cluster.oversubscription_ratio > 1:
        levels = (Level(cluster.pod_gpus, cluster.oversubscription_ratio),)
    link = link_like(card.nvlink_byte_per_s) if card.nvlink_byte_per_s else link_like(card.pcie_byte_per_s, host=True)
    if not card.nvlink_byte_per_s:
        link = replace(link, byte_per_s=link.byte_per_s * shared)
    if bridged:
        link = replace(link, efficiency_share=BRIDGE_EFFICIENCY_SHARE)
    return Fabric(
        link=link,
        gpus_per_domain=cluster.domain if switched else min(cluster.domain, cluster.gpus_per_node),
        wiring=Wiring.SWITCH if switched else Wiring.PAIRS if bridged else Wiring.HOST,
        host_byte_per_s=card.pcie_byte_per_s * shared,
        host_path=cluster.host_wiring,
        in_switch_reduction=switched and card.vendor.lower() == "nvidia" and link.name in REDUCING_LINKS,
        nic_byte_per_s=cluster.nic_byte_per_s,
        levels=levels,
        wiring_stated=switched or cluster.stated_wiring,
    )


def plugged_best(fabric: Fabric) -> Fabric:
    """Cards without NVLink at their best: behind one PCIe switch that nobody shares."""
    return replace(fabric, host_path="switch", wiring_stated=True)


def step_fabric_of(cluster: Cluster) -> Fabric:
    """As a step meets it: no link waits longer than an older and slower one does.

    Lone calls on NVLink 5 start later than on NVLink 4 (measured, and `plan collective` says so), on machines that
    differ in driver, library and clocks too. Published steps do not show it, and a step on the newer card is not
    predicted slower for it.
    """
    fabric = fabric_of(cluster)
    elders = [
        link for link in LINKS if link.byte_per_s < fabric.link.byte_per_s and fabric.link.name.startswith("nvlink")
    ]
    link = fabric.link
    launch, hop = (
        min([getattr(link, what), *(getattr(elder, what) for elder in elders)]) for what in ("launch_s", "hop_s")
    )
    return replace(fabric, link=replace(link, launch_s=launch, hop_s=hop))


DGX_A100 = Fabric(NVLINK3, nic_byte_per_s=25e9)
DGX_H100 = Fabric(NVLINK4, in_switch_reduction=True)
DGX_B200 = Fabric(NVLINK5, in_switch_reduction=True)
GB200_NVL72 = Fabric(NVLINK5, gpus_per_domain=72, in_switch_reduction=True)
