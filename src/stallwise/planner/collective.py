"""The answer to "how long should this collective take": expected time, why, who wins, where it stops scaling."""

from __future__ import annotations

from typing import Any

from stallwise.errors import BadRequest
from stallwise.physics.costs.cliffs import expected_cliffs, explain_jump, group_sizes
from stallwise.physics.costs.collectives import Estimate, Op, collective_time, compare_algorithms, op_named
from stallwise.physics.costs.topology import Level, Wiring, fabric_of
from stallwise.physics.costs.volumes import sent_bytes
from stallwise.physics.specs.cluster import Cluster

SIZES = (64e3, 1e6, 16e6, 256e6, 4e9)  # from all latency to all bandwidth
SLOW_RATIO = 1.0  # beyond the upper end of the interval


def answer_collective(
    op_text: str,
    size_bytes: float,
    cluster: Cluster,
    *,
    per_domain: int | None = None,
    levels: tuple[Level, ...] = (),
    measured_s: float | None = None,
    series: tuple[tuple[int, float], ...] = (),
) -> dict[str, Any]:
    """Everything `stallwise plan collective` says, as plain data."""
    from dataclasses import asdict, replace

    op = op_named(op_text)
    fabric = fabric_of(cluster)
    if levels:
        fabric = replace(fabric, levels=levels)
    ranks = cluster.gpus
    if ranks < 2:
        raise BadRequest("a collective needs at least two ranks", hint="--gpus 8")
    best = collective_time(op, size_bytes, ranks, fabric, per_domain=per_domain)
    answer: dict[str, Any] = {
        "op": op.value,
        "size_bytes": size_bytes,
        "ranks": ranks,
        "per_domain": min(ranks, per_domain or fabric.gpus_per_domain, fabric.gpus_per_domain),
        "gpu": cluster.gpu.title,
        "link": {"name": fabric.link.name, "byte_per_s": fabric.link.byte_per_s},
        "nic_byte_per_s": fabric.nic_byte_per_s,
        "expected": _plain(best),
        "sent_bytes": sent_bytes(op, size_bytes, ranks),
        "algorithms": [_plain(e) for e in compare_algorithms(op, size_bytes, ranks, fabric, per_domain=per_domain)],
        "by_size": [
            {"size_bytes": s, **_plain(collective_time(op, s, ranks, fabric, per_domain=per_domain))} for s in SIZES
        ],
        "by_ranks": [{"ranks": n, **_plain(collective_time(op, size_bytes, n, fabric))} for n in group_sizes(ranks)],
        "cliffs": [asdict(c) for c in expected_cliffs(op, size_bytes, ranks, fabric)],
        "basis": "alpha-beta model per algorithm and protocol, fitted on published NCCL tables (A100, H100, B200)",
    }
    if fabric.wiring is not Wiring.SWITCH and not fabric.wiring_stated:
        answer["wiring"] = (
            "these cards meet over the host: slots, sockets and peer access decide, and nobody said which; "
            "--wiring and --peer-access narrow the interval"
        )
    if measured_s is not None:
        answer["measured"] = _verdict(measured_s, best, op, size_bytes, ranks)
    if series:
        jump = explain_jump(series)
        answer["series"] = {"points": [list(p) for p in sorted(series)], "jump": asdict(jump) if jump else None}
    return answer


def _plain(estimate: Estimate) -> dict[str, Any]:
    parts = estimate.parts
    return {
        "algorithm": estimate.algorithm,
        "protocol": estimate.protocol,
        "limit": estimate.limit,
        "seconds": estimate.seconds,
        "low_s": estimate.low_s,
        "high_s": estimate.high_s,
        "bus_byte_per_s": estimate.bus_byte_per_s,
        "latency_s": parts.latency_s if parts else 0.0,
        "wire_s": parts.wire_s if parts else 0.0,
        "filling_s": parts.filling_s if parts else 0.0,
    }


def _verdict(measured_s: float, best: Estimate, op: Op, size_bytes: float, ranks: int) -> dict[str, Any]:
    if measured_s <= 0:
        raise BadRequest("a measured time must be above zero", hint="--measured 340ms")
    from stallwise.physics.costs.collectives import bus_factor

    state = "as expected"
    if measured_s > best.high_s * SLOW_RATIO:
        state = "slower than it should be"
    elif measured_s < best.low_s:
        state = "quicker than this fabric allows: check the size, the ranks or the link rate"
    return {
        "seconds": measured_s,
        "bus_byte_per_s": size_bytes * bus_factor(op, ranks) / measured_s,
        "ratio": measured_s / best.seconds,
        "state": state,
        "recoverable_s": [max(0.0, measured_s - best.high_s), max(0.0, measured_s - best.low_s)],
    }
