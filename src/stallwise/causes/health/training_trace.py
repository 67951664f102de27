"""A training step is well when the device is busy nearly all of it, with work near the card's roofs, step after step.

Refuted by: a rank that idles more than the mean one, steps that differ, work that nobody could judge, kernels of no known
purpose. An MFU or a step time beside the trace has a proof of its own, and its objection counts.
"""

from __future__ import annotations

from stallwise.causes.health._ceiling import ceiling
from stallwise.causes.health._device_time import busy_share
from stallwise.doctor.findings.proof import Proof
from stallwise.doctor.findings.step_facts import StepFacts, percent
from stallwise.evidence.capture import Capture
from stallwise.evidence.catalog import roofline
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence

BUSY = 0.95  # of the clean step: what launches, borders and the optimizer's joints leave free in good runs is below 5%
NEAR_CEILING = 0.80  # of the busy time; the rest is small kernels that no roof bounds
ALIKE = 0.05  # longest over shortest step: clocks move by this much by themselves
BY_SHAPE = 0.5  # of the busy time with recorded shapes: from here the proof rests on FLOPs and bytes
SHAPES = Capture(
    "a trace with shapes (record_shapes=True), which tells how fast the work is",
    "stallwise record -- python train.py",
    "one short run",
)


def training_trace(evidence: Evidence) -> Proof | None:
    """Busy, near the roofs, and alike."""
    facts = StepFacts(evidence)
    busy = busy_share(evidence)
    if busy is None or facts.unit != "step" or evidence.get(s.ITERATION_KIND) is not None:
        return None
    near = min((f.number for f in evidence.all(roofline.NEAR_SHARE)), default=0.0)
    spread = max((f.number for f in evidence.all(roofline.STEP_SPREAD)), default=float("nan"))
    lacks = _lacks(evidence, busy, near, spread)
    says = f"the device works {percent(busy)} of the step, {percent(near)} of that near a roof of the card"
    because = (
        facts.because(f"busy {percent(busy)} of {facts.steps} steps", s.STEP_TIME, s.BUSY_TIME),
        facts.because(f"{percent(near)} of the busy time in kernels near a roof", roofline.NEAR_SHARE),
    )
    # A busy device of which nobody knows how fast its kernels are leaves the run open; the recording itself may be in line.
    open_only = busy >= BUSY and not spread > ALIKE and evidence.value(roofline.KNOWN_SHARE, 0.0) < NEAR_CEILING
    return Proof(
        of="training step",
        says=says,
        because=because,
        confidence=0.92 if evidence.value(roofline.BY_SHAPE_SHARE, 0.0) >= BY_SHAPE else 0.8,
        limit=None if lacks else ceiling(evidence, near),
        lacks=lacks,
        next=() if near >= NEAR_CEILING else (SHAPES,),
        objects=busy < BUSY or spread > ALIKE,
        covers_run=not (lacks and open_only),
        covers=("training log", "stated numbers", "collectives"),
    )


def _lacks(evidence: Evidence, busy: float, near: float, spread: float) -> str:
    if busy < BUSY:
        return f"the device is idle {percent(1 - busy)} of the time."
    if near < NEAR_CEILING:
        known = evidence.value(roofline.KNOWN_SHARE, 0.0)
        if known < NEAR_CEILING:
            return f"the device is busy, but for {percent(1 - known)} of its work nothing tells whether it is fast."
        return f"the device is busy, but only {percent(near)} of its work is near a roof of the card."
    unread = evidence.value(roofline.UNREAD_SHARE, 0.0)
    if unread > 1 - NEAR_CEILING:
        return f"nobody knows what {percent(unread)} of its work is for."
    if spread == spread and spread > ALIKE:
        return f"the traced steps differ by {percent(spread)}."
    return ""
