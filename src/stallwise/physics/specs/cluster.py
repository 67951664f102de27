"""A cluster: which GPUs, how many, what joins them inside a node and between nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from stallwise.errors import BadRequest
from stallwise.physics.specs.hardware import Gpu, find_gpu, gpu

MOST_GPUS = 10_000_000  # beyond any cluster; a larger count is a typing error

# What vendors ship around each GPU by default: GPUs in one NVLink (or PCIe) domain and network rate per GPU and
# direction. DGX A100: 8 x 200 Gb/s; DGX H100/H200/B200: 8 x 400 Gb/s; B300 and GB300: 800 Gb/s (ConnectX-8).
DOMAINS = {"gb200": 72, "gb300": 72, "gh200": 1}
NICS = {
    "ampere": 25e9,
    "volta": 12.5e9,
    "turing": 12.5e9,
    "hopper": 50e9,
    "blackwell": 50e9,
    "blackwell-rtx": 50e9,
    "ada": 25e9,
    "cdna3": 50e9,
}
FASTER_NICS = {"b300": 100e9, "gb300": 100e9, "gb200": 50e9}
DEFAULT_NIC = 50e9
HOST_WIRINGS = ("", "switch", "root", "sockets")


@dataclass(frozen=True)
class Cluster:
    """`domain` GPUs share NVLink, `gpus_per_node` share a host; rates are per GPU and direction."""

    gpu: Gpu
    gpus: int
    gpus_per_node: int = 8
    domain: int = 8
    nic_byte_per_s: float = 50e9
    network_stated: bool = False  # somebody said how fast it is
    rails: int = 8
    pod_gpus: int = 0  # 0: one flat network
    oversubscription_ratio: float = 1.0  # between pods
    price_dollar_per_gpu_hour: float | None = None
    host_wiring: str = ""  # cards without NVLink: "switch", "root" (one root complex) or "sockets"; empty: not told
    peer_access: bool | None = None  # whether such cards reach each other without a stop in host memory

    def __post_init__(self) -> None:
        if self.gpus < 1:
            raise BadRequest(f"a cluster of {self.gpus} GPUs cannot train", hint="the nearest that can has 1")
        if self.gpus > MOST_GPUS:
            raise BadRequest(f"{self.gpus:,} GPUs exist nowhere", hint=f"at most {MOST_GPUS:,}")
        for what in ("gpus_per_node", "domain", "nic_byte_per_s"):
            if getattr(self, what) <= 0:
                raise BadRequest(f"{what} must be above zero", hint="8 GPUs a node, 400 Gb/s each, is usual")
        if self.host_wiring not in HOST_WIRINGS:
            raise BadRequest(f"wiring '{self.host_wiring}' is not known", hint="one of switch, root, sockets")
        if self.oversubscription_ratio < 1:
            raise BadRequest("oversubscription below 1 cannot be", hint="1 = full bisection, 4 = a quarter of it")

    @property
    def nodes(self) -> int:
        """Hosts, the last one perhaps partly filled."""
        return -(-self.gpus // self.gpus_per_node)

    @property
    def stated_wiring(self) -> bool:
        """Somebody said how cards without a switch are plugged in."""
        return bool(self.host_wiring) or self.peer_access is not None

    @property
    def wiring_known(self) -> bool:
        """NVLink, or somebody said how the cards are plugged in."""
        return self.gpu.nvlink_byte_per_s > 0 or self.stated_wiring

    @property
    def name(self) -> str:
        """Its short name, such as h100-sxmx16384."""
        return f"{self.gpu.name}x{self.gpus}"

    @property
    def price_per_gpu_hour(self) -> float | None:
        """Dollars, as given or from the catalogue."""
        return self.price_dollar_per_gpu_hour or self.gpu.price_dollar_per_hour

    def of_size(self, gpus: int) -> Cluster:
        """The same kind of cluster with another number of GPUs."""
        return replace(self, gpus=gpus)


def cluster_of(card: Gpu | str, gpus: int, **known: float | int | None) -> Cluster:
    """A cluster of one kind of GPU with what its vendor usually puts around it; `known` overrides."""
    found = gpu(card) if isinstance(card, str) else card
    domain = DOMAINS.get(found.name, 8)
    settings: dict[str, float | int | None] = {
        "gpus_per_node": 4 if domain == 72 else min(8, max(gpus, 1)),
        "domain": domain,
        "nic_byte_per_s": FASTER_NICS.get(found.name, NICS.get(found.architecture, DEFAULT_NIC)),
    }
    settings.update({k: v for k, v in known.items() if v is not None})
    settings["network_stated"] = known.get("nic_byte_per_s") is not None
    return Cluster(found, gpus, **settings)  # type: ignore[arg-type]


def find_cluster(name: str, **known: float | int | None) -> Cluster:
    """Reads h100x16384, 512xh200, 8x4090, 2x8xa100 (nodes x GPUs), or a bare GPU name (one of it)."""
    text = name.strip().lower().replace(" ", "").replace("*", "x").replace("×", "x")
    counted = re.fullmatch(r"(\d+)x(.+)", text)
    if counted and find_gpu(counted[2]) and not re.match(r"\d{1,3}(?:x|$)", counted[2]):
        return cluster_of(counted[2], int(counted[1]), **known)  # "8xrtx4090" holds an x and ends in digits too
    match = re.fullmatch(r"(.+?)x(\d+)", text) or re.fullmatch(r"(?P<n>\d+)x(?P<g>[a-z].*)", text)
    if not match:
        nodes = re.fullmatch(r"(\d+)x(\d+)x([a-z].*)", text)
        if nodes:
            per_node = int(nodes[2])
            return cluster_of(nodes[3], int(nodes[1]) * per_node, **{"gpus_per_node": max(per_node, 1), **known})
        if text.lstrip("-").isdecimal() or not text:
            raise BadRequest(f"'{name}' names no GPU", hint="write h100x512, or 512xh100")
        return cluster_of(text, 1, **known)
    if match.groupdict():
        return cluster_of(match["g"], int(match["n"]), **known)
    front = re.fullmatch(r"(\d+)x(\d+)", match[1])
    if front:
        raise BadRequest(f"'{name}' names no GPU", hint="write 2x8xh100")
    return cluster_of(match[1], int(match[2]), **known)
