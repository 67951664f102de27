"""The loss scale halves again and again and never recovers.

## What it means
Dynamic scaling halves the scale whenever a gradient is inf or NaN. A scale that falls below 1 means that gradients overflow
at any scale: the forward pass is broken, or an update made the weights infinite.

## Why it costs
Every step is skipped; the run burns time without learning.

## What else looks so
A few halvings in the first steps are normal: the scaler starts high (65536) and finds its level.

## Fix
Find the first inf (layer and step), then treat that: bf16, fp32 for the layer, clipping, a lower rate at the peak.

## How the gain is found
Steps skipped since the fall began: all of them are lost.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import LAYER_STATS
from stallwise.evidence.catalog import numerics as n
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence

HALVINGS = 8  # in a row: finding its level takes a scaler at most four or five
BELOW = 1.0

# What is seen of several causes; named when the cause itself is not visible.
CLUES = (
    Clue((n.SCALE_LAST,), lambda e: e.value(n.SCALE_LAST) < BELOW, "strong", "the loss scale is below 1"),
    Clue((n.SCALE_HALVINGS,), lambda e: e.value(n.SCALE_HALVINGS) >= HALVINGS, "strong", "the scale keeps halving"),
)


@rule(n.SCALE_HALVINGS)
def loss_scale_collapse(evidence: Evidence) -> Finding | None:
    """Judges the loss scale over the log."""
    halvings, last = evidence.value(n.SCALE_HALVINGS, 0.0), evidence.value(n.SCALE_LAST, 1e9)
    if halvings < HALVINGS and last >= BELOW:
        return None
    facts = [f for q in (n.SCALE_HALVINGS, n.SCALE_LAST, run.FIRST_NAN_STEP) if (f := evidence.get(q)) is not None]
    return Finding(
        headline=f"the loss scale collapsed: {halvings:.0f} halvings in a row, {last:g} at the end",
        confidence=0.9 if last < BELOW else 0.75,
        because=(Reason.of(f"the scale halved {halvings:.0f} times without recovering and ends at {last:g}", *facts),),
        fixes=(
            Fix("find the first layer and step with inf, and keep that layer in fp32 or use bf16"),
            Fix("clip gradients after unscaling; lower the peak rate", cost="a rerun from the last good checkpoint"),
        ),
        avoid="Do not raise the scaler's floor: the steps it would then take carry inf.",
        next=(LAYER_STATS,),
        blocking=True,
    )
