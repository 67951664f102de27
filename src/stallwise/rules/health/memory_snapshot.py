"""Memory is well when no allocation failed, what is freed comes back, and there is room left.

Refuted by: another device or snapshot with a higher peak (the highest counts), memory that the allocator holds beyond live tensors
(what fails is the reservation), retries of an allocation, another device or pool that grows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.catalog import change, run
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence
from stallwise.findings.finding import Fix, Reason
from stallwise.findings.proof import Limit, Proof
from stallwise.findings.step_facts import bytes_text, percent
from stallwise.rules.health._second_number import highest, of_now

FEWEST_EVENTS = 40  # of the record; fewer do not show a return to the floor
RETURNS = 1.05  # lowest level of the last quarter over that of the first: what stays beyond this is kept
QUARTERS = 4
FULL = 0.95  # of the device: the next larger batch fails
PARTS = (m.WEIGHTS, m.GRADIENTS, m.OPTIMIZER, m.ACTIVATIONS, m.LOGITS, m.TEMPORARY, m.OTHER, m.UNEXPLAINED)


def _grows(live: NDArray[np.float64]) -> bool:
    """Its lows do not come back. Highs alone say nothing: activations pile up through one forward pass."""
    quarter = len(live) // QUARTERS
    return quarter > 0 and float(live[-quarter:].min()) > RETURNS * float(live[:quarter].min())


def memory_snapshot(evidence: Evidence) -> Proof | None:
    """No failure, no growth, room."""
    peak = highest(of_now(evidence, m.PEAK))
    live = max(evidence.series(m.LIVE_BYTES), key=lambda s: len(s.values), default=None)
    if peak is None or peak.number <= 0 or live is None:
        return None
    capacity = evidence.value(m.CAPACITY)
    held = highest(fact for q in (m.RESERVED, m.DEVICE_USED) for fact in of_now(evidence, q))
    most = max(peak.number, held.number if held is not None else 0.0)
    near = most / capacity if capacity > 0 else float("nan")
    retried = highest(fact for q in (m.RETRIES, run.ALLOC_RETRIES) for fact in of_now(evidence, q))
    grew = any(_grows(s.values) for s in evidence.series(m.LIVE_BYTES))
    lacks, objects = "", True
    if any(evidence.value(q, 0.0) > 0 for q in (m.FAILED, m.OOMS)):
        lacks = "an allocation failed."
    elif retried is not None and retried.number > 0:
        lacks = f"allocations were tried again after the cache had been emptied, {retried} times."
    elif grew or evidence.value(change.GPU_MEMORY_FACTOR, 1.0) > RETURNS:
        lacks = "live memory does not come back to where it began."
    elif near > FULL:
        lacks = f"the device is {percent(near)} full at the peak."
    elif len(live.values) < FEWEST_EVENTS:
        lacks, objects = f"only {len(live.values)} allocations are recorded; that is too few to see growth.", False
    parts = {q: evidence.value(q, 0.0) for q in PARTS}
    biggest = max(parts, key=lambda q: parts[q])
    name = "recorded without a stack" if biggest is m.UNEXPLAINED else biggest.name.split(".")[-1]
    largest = f"{bytes_text(parts[biggest])} of the peak of {peak} are {name}"
    return Proof(
        of="memory",
        says=f"no allocation failed and live memory comes back to its floor; peak {peak}" if not lacks else f"peak {peak}",
        because=(Reason.of(largest, peak), Reason(f"{len(live.values)} allocations and frees", (live.source,))),
        confidence=0.8,
        limit=None
        if lacks
        else Limit("device memory", near if near == near else 0.0, f"{largest}: to need less, begin there",
                   (Fix(f"fewer bytes there ({name})", worth="in proportion"),)),
        lacks=lacks,
        objects=bool(lacks) and objects,
    )  # fmt: skip
