"""Small gradients flush to zero because fp16 has no room below 6e-8.

## What it means
Without loss scaling (or with a scale applied wrongly: clipped before unscaling, unscaled twice), many gradient elements are
smaller than fp16 can show and become exactly zero.

## Why it costs
Weights behind those gradients stop to learn; the loss flattens early without any error.

## What else looks so
Embedding rows that did not occur have zero gradients by nature: a constant share from the first step on. Dead units keep a
constant share too. What decides is a rising share.

## Fix
A gradient scaler (unscale once, then clip, then step and update), or bf16.

## How the gain is found
The rise of the share of zero gradients; all of it comes back with the right scale.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import LAYER_STATS
from stallwise.evidence.catalog import numerics as n
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence

RISE = 0.01  # of all elements; sampling of embedding rows moves it by less than 0.003

# Old mixed-precision code by hand.
CLUES = (
    Clue(
        (run.PRECISION,), lambda e: e.text(run.PRECISION) == "fp16", "fair, needed", "the run is in fp16", "not in fp16"
    ),
    Clue((n.ZERO_GRADS_RISE,), lambda e: e.value(n.ZERO_GRADS_RISE) >= RISE, "strong", "zero gradients rise"),
)


@rule(n.ZERO_GRADS_RISE)
def fp16_underflow(evidence: Evidence) -> Finding | None:
    """Judges the share of zero gradients over the log."""
    rise = evidence.get(n.ZERO_GRADS_RISE)
    precision = evidence.text(run.PRECISION)
    if rise is None or rise.number < RISE or precision in ("bf16", "fp32", "tf32"):
        return None
    scaled = bool(evidence.series(run.LOSS_SCALE))
    because = [Reason.of(f"the share of zero gradients rose by {rise.number:.1%} of all elements", rise)]
    if not scaled:
        because.append(Reason("no loss scale is logged"))
    progress = evidence.get(n.LOSS_PROGRESS)
    if progress is not None and progress.number < 0.02:
        because.append(Reason.of(f"the loss moved by {progress.number:.1%} over the log", progress))
    return Finding(
        headline="gradients flush to zero in fp16",
        confidence=0.88 if precision == "fp16" else 0.78,
        because=tuple(because),
        fixes=(
            Fix("a gradient scaler: unscale once, then clip, step, update", cost="three lines"),
            Fix("bf16 instead of fp16", worth="no scaling needed", cost="Ampere or later"),
        ),
        avoid="Do not raise the learning rate: what is zero stays zero.",
        next=(LAYER_STATS,),
        blocking=True,
    )
