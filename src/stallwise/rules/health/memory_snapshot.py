"""Memory is well when no allocation failed, what is freed comes back, and there is room left."""

from __future__ import annotations

from stallwise.evidence.catalog import change
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence
from stallwise.findings.finding import Fix, Reason
from stallwise.findings.proof import Limit, Proof
from stallwise.findings.step_facts import bytes_text, percent

FEWEST_EVENTS = 40  # of the record; fewer do not show a return to the floor
RETURNS = 1.05  # lowest level of the last quarter over that of the first: what stays beyond this is kept
FULL = 0.95  # of the device: the next larger batch fails
PARTS = (m.WEIGHTS, m.GRADIENTS, m.OPTIMIZER, m.ACTIVATIONS, m.LOGITS, m.TEMPORARY, m.OTHER, m.UNEXPLAINED)


def memory_snapshot(evidence: Evidence) -> Proof | None:
    """No failure, no growth, room."""
    peak = evidence.get(m.PEAK)
    live = max(evidence.series(m.LIVE_BYTES), key=lambda s: len(s.values), default=None)
    if peak is None or peak.number <= 0 or live is None:
        return None
    capacity = evidence.value(m.CAPACITY)
    near = peak.number / capacity if capacity > 0 else float("nan")
    quarter = len(live.values) // 4
    grew = quarter > 0 and float(live.values[-quarter:].min()) > RETURNS * float(live.values[:quarter].min())
    lacks, objects = "", True
    if any(evidence.value(q, 0.0) > 0 for q in (m.FAILED, m.OOMS)):
        lacks = "an allocation failed."
    elif grew or evidence.value(change.GPU_MEMORY_FACTOR, 1.0) > RETURNS:
        lacks = "live memory does not come back to where it began."
    elif near > FULL:
        lacks = f"the device is {percent(near)} full at the peak."
    elif len(live.values) < FEWEST_EVENTS:
        lacks, objects = f"only {len(live.values)} allocations are recorded; that is too few to see growth.", False
    parts = {q: evidence.value(q, 0.0) for q in PARTS}
    biggest = max(parts, key=lambda q: parts[q])
    name = "recorded without a stack" if biggest is m.UNEXPLAINED else biggest.name.split(".")[-1]
    held = f"{bytes_text(parts[biggest])} of the peak of {peak} are {name}"
    return Proof(
        of="memory",
        says=f"no allocation failed and live memory comes back to its floor; peak {peak}" if not lacks else f"peak {peak}",
        because=(Reason.of(held, peak), Reason(f"{len(live.values)} allocations and frees", (live.source,))),
        confidence=0.8,
        limit=None
        if lacks
        else Limit("device memory", near if near == near else 0.0, f"{held}: to need less, begin there",
                   (Fix(f"fewer bytes there ({name})", worth="in proportion"),)),
        lacks=lacks,
        objects=bool(lacks) and objects,
    )  # fmt: skip
