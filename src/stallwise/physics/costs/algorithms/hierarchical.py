"""Hierarchical all-reduce in three calls: reduce-scatter inside, all-reduce between, all-gather inside.

What frameworks do by hand (HSDP, 2D all-reduce). The network carries 1/g of the data per GPU as in a good ring, with
2(N-1) network steps instead of 2(n-1) steps of all kinds; but the three phases run one after the other.
"""

from __future__ import annotations

from stallwise.physics.costs.algorithms import ring
from stallwise.physics.costs.algorithms._parts import Group, Op, Parts

NAME = "hierarchical"
AUTOMATIC = False


def cost(op: Op, size_bytes: float, group: Group) -> Parts | None:
    """The sum of the three phases."""
    if op is not Op.ALL_REDUCE or group.domains < 2 or group.per_domain < 2:
        return None
    local = Group(group.per_domain, group.per_domain, group.fabric)
    # One leader ring per local rank, all at once, each on its own network card.
    across = Group(group.domains, 1, group.fabric)
    phases = (
        ring.cost(Op.REDUCE_SCATTER, size_bytes, local),
        _at_width(ring.cost(Op.ALL_REDUCE, size_bytes / group.per_domain, across), group),
        ring.cost(Op.ALL_GATHER, size_bytes, local),
    )
    found = [phase for phase in phases if phase is not None]
    slowest = max(found, key=lambda phase: phase.seconds)
    return Parts(
        sum(p.latency_s for p in found),
        sum(p.wire_s for p in found),
        sum(p.filling_s for p in found),
        slowest.protocol,
        "network" if slowest is found[1] else "link",
    )


def _at_width(parts: Parts | None, group: Group) -> Parts | None:
    """The leaders span as many GPUs as the whole group, so they meet the same narrow levels."""
    if parts is None:
        return None
    ratio = group.fabric.narrowing(group.ranks) / group.fabric.narrowing(group.domains)
    return Parts(parts.latency_s, parts.wire_s * ratio, parts.filling_s, parts.protocol, parts.limit)
