"""A training step is well when the device is busy nearly all of it, with work near the card's roofs, step after step."""

from __future__ import annotations

from stallwise.evidence.capture import Capture
from stallwise.evidence.catalog import roof
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.findings.finding import Fix
from stallwise.findings.proof import Limit, Proof
from stallwise.findings.step_facts import StepFacts, percent
from stallwise.rules.health._device_time import busy_share

BUSY = 0.95  # of the clean step: what launches, borders and the optimizer's joints leave free in good runs is below 5%
NEAR_ROOF = 0.80  # of the busy time; the rest is small kernels that no roof bounds
ALIKE = 0.05  # longest over shortest step: clocks move by this much by themselves
BY_SHAPE = 0.5  # of the busy time with recorded shapes: from here the proof rests on FLOPs and bytes
SHAPES = Capture(
    "a trace with shapes (record_shapes=True), which tells how fast the work is",
    "stallwise record --shapes -- python train.py",
    "one short run",
)


def training_trace(evidence: Evidence) -> Proof | None:
    """Busy, near the roofs, and alike."""
    facts = StepFacts(evidence)
    busy = busy_share(evidence)
    if busy is None or facts.unit != "step" or evidence.get(s.ITERATION_KIND) is not None:
        return None
    near = evidence.value(roof.NEAR_SHARE, 0.0)
    spread = evidence.value(roof.STEP_SPREAD)
    says = f"the device works {percent(busy)} of the step, {percent(near)} of that near a roof of the card"
    because = (
        facts.because(f"busy {percent(busy)} of {facts.steps} steps", s.STEP_TIME, s.BUSY_TIME),
        facts.because(f"{percent(near)} of the busy time in kernels near a roof", roof.NEAR_SHARE),
    )
    return Proof(
        of="training step",
        says=says,
        because=because,
        confidence=0.92 if evidence.value(roof.BY_SHAPE_SHARE, 0.0) >= BY_SHAPE else 0.8,
        limit=_limit(evidence, near) if near >= NEAR_ROOF and busy >= BUSY else None,
        lacks=_lacks(evidence, busy, near, spread),
        next=() if near >= NEAR_ROOF else (SHAPES,),
        objects=busy < BUSY or spread > ALIKE,
        covers=("training log", "stated numbers", "collectives"),
    )


def _lacks(evidence: Evidence, busy: float, near: float, spread: float) -> str:
    if busy < BUSY:
        return f"the device is idle {percent(1 - busy)} of the time."
    if near < NEAR_ROOF:
        known = evidence.value(roof.KNOWN_SHARE, 0.0)
        if known < NEAR_ROOF:
            return f"the device is busy, but for {percent(1 - known)} of its work nothing tells whether it is fast."
        return f"the device is busy, but only {percent(near)} of its work is near a roof of the card."
    if spread == spread and spread > ALIKE:
        return f"the traced steps differ by {percent(spread)}."
    return ""


def _limit(evidence: Evidence, near: float) -> Limit:
    matrix = evidence.value(roof.MATRIX_SHARE, 0.0)
    rate = evidence.value(roof.MATRIX_RATE_SHARE)
    if matrix >= 0.5:
        at = f"at {percent(rate)} of the dense peak" if rate == rate else "in library kernels that fill the card"
        return Limit(
            "matrix units",
            rate if rate == rate else near,
            f"{percent(matrix)} of the busy time is matrix work, {at}: to go faster, compute less or in a narrower type",
            (
                Fix("a narrower type (FP8 where the model allows)", worth="up to twice the matrix rate", risk="accuracy"),
                Fix("compile what is not compiled: fewer passes over memory", worth="part of the other "
                    f"{percent(1 - matrix)}", cost="compile time"),
                Fix("more or faster cards", worth="in proportion, less what they exchange", cost="money"),
            ),
        )  # fmt: skip
    return Limit(
        "memory bandwidth",
        near,
        f"{percent(1 - matrix)} of the busy time moves data: to go faster, move fewer bytes",
        (
            Fix("fuse what passes over the same data (torch.compile)", worth="one pass instead of several"),
            Fix("narrower activations and states", worth="in proportion to the bytes", risk="accuracy"),
        ),
    )
