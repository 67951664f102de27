"""PAT: parallel aggregated trees for all-gather and reduce-scatter with one rank per domain.

Logarithmic steps like a tree, but every rank's own shard travels its own tree; used where a ring over many nodes is
all latency (NCCL 2.23 and later, one GPU per node).
"""

from __future__ import annotations

from math import ceil, log2

from stallwise.physics.costs.algorithms._parts import Group, Op, Parts, best, bulk, low_latency

NAME = "pat"
AUTOMATIC = True
RATE_SHARE = 0.75  # of a ring's rate (factor in NCCL's tuner)


def cost(op: Op, size_bytes: float, group: Group) -> Parts | None:
    """log2(n) network steps."""
    if op not in (Op.ALL_GATHER, Op.REDUCE_SCATTER) or group.per_domain != 1 or group.ranks < 2:
        return None
    fabric, n = group.fabric, group.ranks
    steps_s = ceil(log2(n)) * fabric.nic_hop_s
    wire_s = (n - 1) / n * size_bytes / (RATE_SHARE * group.nic_byte_per_s)
    launch_s = fabric.link.launch_s
    return best(low_latency(launch_s, steps_s, wire_s), bulk(launch_s, steps_s, wire_s, 0.0, "network"))
