"""What the algorithms share: the group, the parts of a time, and how latency and bandwidth add up in a pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from stallwise.physics.costs.topology import Fabric, Wiring


class Op(Enum):
    """A collective operation, by the size that nccl-tests would print for it."""

    ALL_REDUCE = "all-reduce"  # size: the buffer on every rank
    ALL_GATHER = "all-gather"  # size: the gathered result
    REDUCE_SCATTER = "reduce-scatter"  # size: the buffer before scattering
    ALL_TO_ALL = "all-to-all"  # size: what one rank sends in all, its own part included
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    SEND_RECV = "send-recv"


@dataclass(frozen=True, slots=True)
class Group:
    """The ranks of one communicator on a fabric."""

    ranks: int
    per_domain: int  # ranks of this group that share an NVLink domain
    fabric: Fabric

    @property
    def domains(self) -> int:
        """How many domains the group touches."""
        return -(-self.ranks // self.per_domain)

    @property
    def link_byte_per_s(self) -> float:
        """What a ring of large messages gets per GPU inside a domain."""
        fabric = self.fabric
        if fabric.wiring is Wiring.PAIRS and self.per_domain > 2:
            return BETWEEN_PAIRS_SHARE * fabric.host_byte_per_s
        rate = fabric.link.byte_per_s * fabric.link.efficiency_share
        if fabric.wiring is Wiring.HOST and self.per_domain > 2:
            if fabric.host_path == "switch":
                return rate
            # One path through the host carries everybody's traffic, and from five cards on it crosses the sockets.
            across = fabric.host_path == "sockets" or (not fabric.host_path and self.per_domain > CARDS_PER_SOCKET)
            return rate / self.per_domain / (SOCKET_CROSSING_RATIO if across else 1.0)
        return rate

    @property
    def copy_byte_per_s(self) -> float:
        """How fast a rank copies or reduces its own shard: the SMs of the collective do it, not the link."""
        floor = SLOWEST_COPY_BYTE_PER_S
        return OWN_SHARD_RATE_RATIO * max(self.fabric.link.byte_per_s * self.fabric.link.efficiency_share, floor)

    @property
    def nic_byte_per_s(self) -> float:
        """What one GPU's share of the network cards moves across the group's widest boundary."""
        fabric = self.fabric
        return fabric.nic_byte_per_s * fabric.nic_efficiency_share / fabric.narrowing(self.ranks)


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the time goes; the sum is the prediction."""

    latency_s: float
    wire_s: float
    filling_s: float  # the pipeline fills and drains, chunk by chunk
    protocol: str
    limit: str  # what bounds it: "latency", "link" or "network"

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.latency_s + self.wire_s + self.filling_s


# A ring through two bridged pairs crosses PCIe between them: 24 of 32 and 48 of 64 GB/s in Vidur's pairwise profiles.
BETWEEN_PAIRS_SHARE = 0.75
CARDS_PER_SOCKET = 4
SOCKET_CROSSING_RATIO = 1.7  # eight L40S reach 1.2-2.0 GB/s each where four reach 4.7 (aiconfigurator's tables)
SLOWEST_COPY_BYTE_PER_S = 200e9  # even a few SMs of a PCIe card move this much inside its own memory

# Fitted on the same tables as the links (see topology.Link); one value for all generations.
LOW_LATENCY_RATE_SHARE = 0.25  # LL spends half of each word on a flag and moves little per step
LOW_LATENCY_BLEND = 2.9  # steps overlap with their own data: a p-norm between max (infinite) and sum (1)
SIMPLE_HOP_RATIO = 4.65  # a step of the bulk protocol, with its fences, against one of LL
FILLING_SHARE = 0.22  # of the geometric mean of latency and wire time, which optimal chunking would pay twice
FILLING_CAP = 180.0  # chunks stop growing at the buffer size: past this ratio the filling cost levels off
OWN_SHARD_RATE_RATIO = 1.13  # a rank also copies or reduces its own shard, through the same few SMs


def low_latency(launch_s: float, steps_s: float, wire_s: float) -> Parts:
    """Small messages: every step costs a flag check, the data rides along at a fraction of the rate."""
    slow_wire_s = wire_s / LOW_LATENCY_RATE_SHARE
    blended = (steps_s**LOW_LATENCY_BLEND + slow_wire_s**LOW_LATENCY_BLEND) ** (1 / LOW_LATENCY_BLEND)
    latency_bound = steps_s >= slow_wire_s
    return Parts(launch_s + steps_s, 0.0, blended - steps_s, "LL", "latency" if latency_bound else "link")


def bulk(launch_s: float, steps_s: float, wire_s: float, own_s: float, limit: str) -> Parts:
    """Large messages: full rate, after a pipeline of heavier steps has filled."""
    fill_s = steps_s * SIMPLE_HOP_RATIO
    filling = 0.0
    if fill_s > 0:
        ratio = wire_s / fill_s
        filling = FILLING_SHARE * fill_s * ratio**0.5 / (1 + (ratio / FILLING_CAP) ** 0.5)
    busy = wire_s + own_s
    return Parts(launch_s + fill_s, busy, filling, "Simple", limit if busy > fill_s else "latency")


def best(*choices: Parts) -> Parts:
    """The quicker protocol."""
    return min(choices, key=lambda parts: parts.seconds)
