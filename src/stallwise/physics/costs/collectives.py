"""How long a collective takes, on which algorithm, and how sure we are.

    time = launch + steps x latency per step + bytes on the busiest link / its rate + filling the pipeline

for each algorithm and protocol that can run the operation; the quickest is the answer, which is also what NCCL's tuner
aims for. Sizes follow nccl-tests: for an all-gather it is the gathered result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stallwise.errors import BadRequest
from stallwise.physics.costs.algorithms import all_algorithms
from stallwise.physics.costs.algorithms._parts import Group, Op, Parts
from stallwise.physics.costs.topology import Fabric, Wiring, plugged_best

__all__ = ["Estimate", "Op", "bus_factor", "collective_time", "compare_algorithms", "op_named"]

# Half-widths of the 90% interval, as factors, from the residuals on the published tables.
SPREAD_INSIDE = 1.25  # within a domain
SPREAD_NETWORK = 1.6  # across domains: the fabric's health, routing and NIC settings are not ours to see
SPREAD_PLUGGED = 1.5  # without a switch, once somebody said how the cards are plugged in
SPREAD_HOST = SPREAD_PLUGGED**3  # before: slots, sockets and peer-to-peer paths decide, three times as wide
SPREAD_SMALL = 1.4  # below a megabyte: graph replay, stream priority and CPU speed move the launch


@dataclass(frozen=True, slots=True)
class Estimate:
    """A predicted time with its 90% interval."""

    seconds: float
    low_s: float
    high_s: float
    algorithm: str
    bus_byte_per_s: float
    protocol: str = ""
    limit: str = ""  # "latency", "link" or "network"
    parts: Parts | None = None


def op_named(text: str) -> Op:
    """Reads allreduce, all_reduce, AllReduce, all-reduce, a2a..."""
    plain = "".join(c for c in text.lower() if c.isalpha())
    short = {
        "ar": Op.ALL_REDUCE,
        "ag": Op.ALL_GATHER,
        "rs": Op.REDUCE_SCATTER,
        "aa": Op.ALL_TO_ALL,  # a2a without its digit
        "pp": Op.SEND_RECV,  # p2p likewise
        "send": Op.SEND_RECV,
    }
    known = {op.value.replace("-", ""): op for op in Op} | short
    if plain not in known:
        raise BadRequest(f"'{text}' is not a collective", hint="one of " + ", ".join(op.value for op in Op))
    return known[plain]


def bus_factor(op: Op, ranks: int) -> float:
    """What nccl-tests multiplies size / time by, so that the result compares with a link's rate."""
    if op is Op.ALL_REDUCE:
        return 2 * (ranks - 1) / ranks
    if op in (Op.ALL_GATHER, Op.REDUCE_SCATTER, Op.ALL_TO_ALL):
        return (ranks - 1) / ranks
    return 1.0


def collective_time(
    op: Op | str, size_bytes: float, ranks: int, fabric: Fabric, *, per_domain: int | None = None
) -> Estimate:
    """The expected time; `per_domain` ranks of the group share an NVLink domain (default: as many as fit)."""
    choices = compare_algorithms(op, size_bytes, ranks, fabric, per_domain=per_domain)
    return next(e for e in choices if _automatic(e.algorithm))


def compare_algorithms(
    op: Op | str, size_bytes: float, ranks: int, fabric: Fabric, *, per_domain: int | None = None
) -> tuple[Estimate, ...]:
    """Every algorithm that can run it, quickest first."""
    op = op_named(op) if isinstance(op, str) else op
    if ranks < 1 or ranks != int(ranks):
        raise BadRequest(f"{ranks} ranks make no group", hint="a whole number from 1 up")
    if not size_bytes >= 0 or size_bytes == float("inf"):
        raise BadRequest(f"{size_bytes} bytes is not a size", hint="like 2GB or 64KB")
    if ranks == 1:
        return (Estimate(0.0, 0.0, 0.0, "none", float("inf")),)
    local = min(ranks, per_domain or fabric.gpus_per_domain, fabric.gpus_per_domain)
    group = Group(int(ranks), local, fabric)
    found: list[Estimate] = []
    for module in all_algorithms():
        parts: Parts | None = module.cost(op, size_bytes, group)
        if parts is None:
            continue
        estimate = _estimate(module.NAME, parts, op, size_bytes, group)
        if (
            fabric.wiring is not Wiring.SWITCH and not fabric.wiring_stated
        ):  # nobody said that there is no switch, either
            best: Parts | None = module.cost(op, size_bytes, Group(int(ranks), local, plugged_best(fabric)))
            if best is not None:
                estimate = replace(estimate, low_s=min(estimate.low_s, best.seconds / SPREAD_PLUGGED))
        found.append(estimate)
    return tuple(sorted(found, key=lambda e: e.seconds))


def _automatic(name: str) -> bool:
    return name == "none" or any(name == m.NAME and m.AUTOMATIC for m in all_algorithms())


def _estimate(name: str, parts: Parts, op: Op, size_bytes: float, group: Group) -> Estimate:
    seconds = parts.seconds
    crosses = group.domains > 1
    spread = max(SPREAD_NETWORK if crosses else SPREAD_INSIDE, SPREAD_SMALL if size_bytes < 1e6 else 1.0)
    if group.fabric.wiring is not Wiring.SWITCH:
        spread = SPREAD_PLUGGED if group.fabric.wiring_stated else SPREAD_HOST
    # A group placed inside one pod, or a ring that follows the racks, escapes the narrow level altogether.
    narrowing = group.fabric.narrowing(group.ranks)
    escape_s = parts.wire_s * (1 - 1 / narrowing) if parts.limit == "network" else 0.0
    rate = size_bytes * bus_factor(op, group.ranks) / seconds
    return Estimate(
        seconds, (seconds - escape_s) / spread, seconds * spread, name, rate, parts.protocol, parts.limit, parts
    )
