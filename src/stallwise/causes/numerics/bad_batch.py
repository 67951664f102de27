"""One batch is an outlier: loss and gradient jump together for a step and come back.

## What it means
A corrupt sample, a wrong label, a document of repeated tokens. Loss and gradient norm rise in the same step, because both
come from the same data, and the next step is normal.

## Why it costs
With clipping almost nothing; without it the one update can undo many.

## What else looks so
When the update or the gradient moves some steps earlier, the optimizer is the reason. When the spike lasts, it is an explosion.

## Fix
Look at the samples of that step (the loader's seed and shard tell them); clip the norm; skip steps over a threshold; clean the
shard.

## How the gain is found
The steps until the loss is back at its trend.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import LOSS_LOG
from stallwise.evidence.catalog import numerics as n
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence

SHORT = 2.5  # steps
FEW = 4
FAR = 1.5  # times the usual loss: a jump that the gradient does not share is sure only from here; noise reaches 1.3 in 600 steps
JUMP = 1.15  # times the usual loss: less is noise

# Suspected often, the reason in about one of eight.
CLUES = (
    Clue((n.SPIKE_STEPS,), lambda e: e.value(n.SPIKE_STEPS) <= SHORT, "fair", "the spike lasts a step or two"),
    Clue((n.FIRST_MOVER,), lambda e: e.text(n.FIRST_MOVER) == "loss", "fair", "loss and gradient jump together"),
)


@rule(n.SPIKES)
def bad_batch(evidence: Evidence) -> Finding | None:
    """Judges isolated spikes."""
    spikes, length = evidence.value(n.SPIKES, 0.0), evidence.value(n.SPIKE_STEPS, 9.0)
    if not 1 <= spikes <= FEW or length > SHORT or evidence.text(n.FIRST_MOVER) != "loss":
        return None
    if evidence.value(n.LOSS_RATIO, 1.0) < JUMP or evidence.value(n.RECOVERED, 0.0) < 0.5:
        return None
    if evidence.value(run.NAN_STEPS, 0.0) > 0 and evidence.text(run.PRECISION) == "fp16":
        return None
    step = evidence.get(n.FIRST_STEP)
    gradient = evidence.value(n.GRAD_RATIO, 1.0)
    facts = [f for q in (n.FIRST_STEP, n.LOSS_RATIO, n.GRAD_RATIO) if (f := evidence.get(q)) is not None]
    return Finding(
        headline=f"an outlier batch at step {step.number:.0f}" if step else "an outlier batch",
        confidence=0.82 if gradient >= 2 else 0.65 if evidence.value(n.LOSS_RATIO) >= FAR else 0.45,
        because=(
            Reason.of(f"the loss jumps {evidence.value(n.LOSS_RATIO):.1f}x for {length:.0f} step(s) and comes back", *facts),
            *((Reason.of(f"the gradient norm jumps {gradient:.1f}x in the same step", *facts),) if gradient >= 2 else ()),
        ),
        fixes=(
            Fix("look at the samples of that step and drop or repair them", cost="replay the loader with its seed"),
            Fix("clip the gradient norm; skip steps far beyond it", worth="the update it would make"),
        ),
        avoid="Do not lower the learning rate for one batch.",
        next=(LOSS_LOG,),
    )  # fmt: skip
