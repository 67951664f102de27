"""Memory is well when no allocation failed, repeated passes come back to the same level, and there is room left.

Refuted by: another device or snapshot with a higher peak (the highest counts), memory that the allocator holds beyond live tensors
(what fails is the reservation), retries of an allocation, another device or pool that grows.
"""

from __future__ import annotations

from stallwise.causes.health._second_number import highest, of_now
from stallwise.causes.step.allocator_churn import flushed
from stallwise.doctor.findings.finding import Fix, Reason
from stallwise.doctor.findings.proof import Limit, Proof
from stallwise.doctor.findings.step_facts import percent
from stallwise.evidence.capture import MEMORY_SNAPSHOT
from stallwise.evidence.catalog import change, run
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence

FEWEST_EVENTS = 40  # of the record; fewer do not show a pass
RETURNS = 1.05  # floor after the last pass over that after the second: what stays beyond this is kept
FULL = 0.95  # of the device: the next larger batch fails
PARTS = (m.WEIGHTS, m.GRADIENTS, m.OPTIMIZER, m.ACTIVATIONS, m.LOGITS, m.TEMPORARY, m.OTHER, m.UNEXPLAINED)
GIB = float(1 << 30)


def memory_snapshot(evidence: Evidence) -> Proof | None:
    """No failure, no growth from pass to pass, no churn, room."""
    peak = highest(of_now(evidence, m.PEAK))
    live = max(evidence.series(m.LIVE_BYTES), key=lambda s: len(s.values), default=None)
    if peak is None or peak.number <= 0 or live is None:
        return None
    lacks, objects = _lacks(evidence, peak.number, len(live.values))
    parts = {q: evidence.value(q, 0.0) for q in PARTS}
    biggest = max(parts, key=lambda q: parts[q])
    name = "recorded without a stack" if biggest is m.UNEXPLAINED else biggest.name.split(".")[-1]
    held = f"{_gib(parts[biggest])} of the peak of {_gib(peak.number)} are {name}"
    capacity = evidence.value(m.CAPACITY)
    near = max(peak.number, _held(evidence)) / capacity if capacity > 0 else 0.0
    return Proof(
        of="memory",
        says=_says(evidence, peak.number, float(live.values.min())),
        because=(Reason.of(held, peak), Reason(f"{len(live.values)} points of the record", (live.source,))),
        confidence=0.8,
        limit=None if lacks else Limit("device memory", near, f"{held}: to need less, begin there",
                                       (Fix(f"fewer bytes there ({name})", worth="in proportion"),)),
        lacks=lacks,
        objects=objects,
        next=(MEMORY_SNAPSHOT,) if lacks and not objects else (),
    )  # fmt: skip


def _says(evidence: Evidence, peak: float, lowest: float) -> str:
    failed = any(evidence.value(q, 0.0) > 0 for q in (m.FAILED, m.OOMS))
    passes, first, last = (evidence.value(q, 0.0) for q in (m.PASSES, m.FIRST_FLOOR, m.LAST_FLOOR))
    parts = [
        "an allocation failed" if failed else "no allocation failed",
        f"peak {_gib(peak)}, {_gib(peak - lowest)} above the lowest level",
    ]
    if passes > 1:
        parts.append(
            f"after {passes:.0f} passes live memory comes down to {_gib(last)} (after the first: {_gib(first)})"
        )
    elif passes:
        parts.append(f"one pass that comes down to {_gib(last)}; growth from step to step needs more than one")
    allocated, reserved = evidence.get(m.END_ALLOCATED), evidence.get(m.END_RESERVED)
    if allocated is not None and reserved is not None and reserved.number > 0:
        spare = percent(1.0 - min(1.0, allocated.number / reserved.number))
        parts.append(
            f"at the end {_gib(allocated.number)} live of {_gib(reserved.number)} reserved ({spare} cached and free)"
        )
    taken, back = evidence.get(m.SEGMENT_ALLOCS), evidence.get(m.SEGMENT_FREES)
    if taken is not None and back is not None and taken.samples:
        parts.append(f"{taken.number:.0f} segments taken from the device and {back.number:.0f} given back")
    return "; ".join(parts)


def _held(evidence: Evidence) -> float:
    """What the allocator or the device counts as taken, live or not."""
    held = highest(fact for q in (m.RESERVED, m.DEVICE_USED) for fact in of_now(evidence, q))
    return held.number if held is not None else 0.0


def _lacks(evidence: Evidence, peak: float, points: int) -> tuple[str, bool]:
    """What stands against memory that is well, and whether it was seen rather than not recorded."""
    capacity = evidence.value(m.CAPACITY)
    taken, back = evidence.value(m.SEGMENT_ALLOCS, 0.0), evidence.value(m.SEGMENT_FREES, 0.0)
    if any(evidence.value(q, 0.0) > 0 for q in (m.FAILED, m.OOMS)):
        return "an allocation failed.", True
    retried = highest(fact for q in (m.RETRIES, run.ALLOC_RETRIES) for fact in of_now(evidence, q))
    if retried is not None and retried.number > 0:
        return f"allocations were tried again after the cache had been emptied, {retried} times.", True
    if (grew := evidence.value(change.GPU_MEMORY_FACTOR, 1.0)) > RETURNS:
        return f"live memory grows from pass to pass, {grew:.2f}x in all.", True
    most = max(peak, _held(evidence))
    if capacity > 0 and most > FULL * capacity:
        return f"the device is {percent(most / capacity)} full at the peak.", True
    if flushed(taken, back):
        return (
            f"{back:.0f} of {taken:.0f} segments were given back to the device: the cache is flushed again and again.",
            True,
        )
    if points < FEWEST_EVENTS:
        return f"only {points} allocations are recorded; that is too few to see a pass.", False
    return "", False


def _gib(size: float) -> str:
    """As PyTorch prints it."""
    return f"{size / GIB:.2f} GiB"
