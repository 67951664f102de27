"""The arithmetic of a failed allocation: who holds the rest, what was lacking, and which tensor it was."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum

from stallwise.doctor.measures._stated_model import shape_of
from stallwise.evidence.catalog import fabric, run, stated
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact
from stallwise.physics.costs.envelope import score_matrix_bytes
from stallwise.physics.costs.tensor_sizes import CLOSE, name_of_shape, name_of_size

ORDER = 20
GIB = 1 << 30
CONTEXT_BYTES = 1.2e9  # CUDA context and libraries of one process that the older messages do not count


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts derived from the sizes in the message or snapshot."""
    yield from _held_by_others(evidence)
    request, free = evidence.get(m.REQUEST), evidence.get(m.FREE)
    if request is None:
        return
    if free is not None:
        yield Fact(m.SHORTFALL, max(0.0, request.number - free.number), request.source)
    unused = _never_used(evidence)
    if unused is not None:
        yield Fact(m.UNUSED_RESERVED, unused, evidence.all(m.RESERVED)[0].source)
    elsewhere = _elsewhere(evidence)
    if elsewhere is not None and not evidence.all(m.ELSEWHERE):
        yield Fact(m.ELSEWHERE, elsewhere, request.source)
    shape = {
        "vocab": evidence.value(stated.VOCAB, 0.0),
        "heads": evidence.value(stated.HEADS, 0.0),
        "sequence": evidence.value(stated.SEQUENCE, 0.0),
        "microbatch": evidence.value(stated.MICROBATCH, 1.0),
        "hidden": evidence.value(stated.HIDDEN, 0.0),
    }
    name = name_of_size(request.number, **shape) or _scores_of_a_rank(evidence, request.number)
    name = name or name_of_shape(evidence.text(m.SHAPE))
    largest = evidence.value(m.LARGEST_TENSOR, 0.0)
    if name is None and largest and _copy_of(request.number, largest):
        factor = request.number / largest
        name = "a copy of the largest tensor" if abs(factor - 1) < 0.01 else "an fp32 copy of the largest tensor"
    if name is not None:
        yield Fact(m.TENSOR, name, request.source)
    growth = _eval_growth(evidence)
    if growth:
        yield Fact(m.EVAL_GROWTH, growth, request.source)


def _scores_of_a_rank(evidence: Evidence, size_bytes: float) -> str | None:
    """Heads of the stated model on one rank x s^2: exact for every layout that was stated, so the one that fits is named."""
    model, sequence = shape_of(evidence), evidence.value(stated.SEQUENCE, 0.0)
    each = evidence.value(stated.MICROBATCH, 1.0)
    heads = evidence.value(stated.HEADS, float(model.heads) if model is not None else 0.0)
    degrees = dict.fromkeys([f.number for f in evidence.all(fabric.TP_SIZE)] or [1.0])
    if not heads or not sequence:
        return None
    for tp in degrees:
        for width, dtype in ((2.0, "16-bit"), (4.0, "fp32")):
            if abs(size_bytes / score_matrix_bytes(sequence, each, heads, tp, width) - 1.0) < CLOSE:
                split = f" / TP {tp:.0f} = {heads / tp:.0f}" if tp > 1 else ""
                more = max(degrees)
                other = (
                    f"; at TP {more:.0f} half as many heads, {size_bytes * tp / more / GIB:.2f} GiB"
                    if more == 2 * tp
                    else ""
                )
                return (
                    f"{heads:.0f} heads{split} x {sequence:,.0f} sequence^2 (attention scores) x {each:.0f} in {dtype}, "
                    f"{size_bytes / GIB:.2f} GiB{other}"
                )
    return None


def _copy_of(request: float, largest: float) -> bool:
    return any(abs(request / largest - factor) < 0.01 for factor in (1.0, 2.0))


def _never_used(evidence: Evidence) -> float | None:
    """Reserved beyond the highest use ever: at least so much held no tensor when it failed, whenever the table was printed."""
    if evidence.get(m.UNUSED_RESERVED) is not None:
        return None
    left = evidence.value(m.RESERVED) - evidence.value(m.PEAK)
    return left if left > 0 else None


def _elsewhere(evidence: Evidence) -> float | None:
    capacity, free = evidence.value(m.CAPACITY), evidence.value(m.FREE)
    mine = evidence.value(m.PROCESS_USE)
    if mine != mine:
        reserved = evidence.value(m.RESERVED)
        mine = reserved + CONTEXT_BYTES if reserved == reserved else mine
    left = capacity - free - mine
    return max(0.0, left) if left == left else None


def _held_by_others(evidence: Evidence) -> Iterator[Fact]:
    """What the card itself lists: one of several holders may be who failed; where none is listed, all is somebody else's."""
    listed = evidence.all(m.LISTED_USE)
    if not listed or not (evidence.all(m.FAILED) or evidence.all(m.REQUEST)) or evidence.all(m.PROCESS_USE):
        return
    others: dict[int | None, float] = {}
    for gpu in {f.scope.gpu for f in listed}:
        held = [f.number for f in listed if f.scope.gpu == gpu]
        others[gpu] = fsum(held) - max(held)
    cards = [
        t for t in evidence.table("gpu.samples") if {"memory_used_bytes", "memory_total_bytes"} <= t.columns.keys()
    ]
    if cards and None in others:
        others[None] = max(float(t.columns["memory_used_bytes"][-1]) for t in cards)
    if cards and not evidence.all(m.CAPACITY):
        yield Fact(m.CAPACITY, max(float(t.columns["memory_total_bytes"][-1]) for t in cards), cards[0].source)
    yield Fact(m.ELSEWHERE, max(others.values()), listed[0].source)


def _eval_growth(evidence: Evidence) -> float:
    """Growth of GPU memory at the end of a series that was flat before, when the failure is in validation."""
    if evidence.text(m.PHASE) != "evaluation":
        return 0.0
    for series in evidence.series(run.GPU_MEMORY):
        values = series.values[series.values == series.values]
        if len(values) >= 6 and values[-1] > 1.2 * values[: max(len(values) // 4, 2)].max():
            return float(values[-1] - values.min())
    return 0.0
