"""Extra forward work runs inside the training step.

## What it means
The step evaluates, computes metrics on a second forward pass, or runs the model once more for logging. No backward
pass uses that work.

## Why it costs
A forward pass is about a third of a step. Done every step it adds that much to each of them.

## What else looks so
A frozen teacher or encoder is also forward work without gradients, and is wanted. Recompute repeats the forward pass
inside the backward pass.

## Fix
Evaluate every N steps; reuse the training outputs for metrics; run evaluation under `no_grad` on another stream or
device.

## How the gain is found
The device time inside the named range, or the part of the forward work that exceeds what gradients account for; the
low end takes 0.8 of it.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import above
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, ms
from stallwise.evidence.catalog import change
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category


@rule(s.EVALUATION_TIME, s.STEP_TIME)
def eval_in_loop(evidence: Evidence) -> Finding | None:
    """Looks for forward work that nothing uses."""
    facts = StepFacts(evidence)
    extra = facts.seconds(s.EVALUATION_TIME)
    if facts.share(extra) < NOTICEABLE or not facts.knows(s.MICROBATCHES):
        return None
    name = facts.word(s.EVALUATION_NAMED)
    gain = facts.gain(0.8 * extra, extra, "device time of forward work without a backward pass")
    reason = (
        facts.because(f"the range '{name}' runs {ms(extra)} a {facts.unit}", s.EVALUATION_NAMED)
        if name
        else facts.because("far more forward products than gradients of products", s.EVALUATION_TIME)
    )
    return Finding(
        headline=f"Extra forward work inside the step: {ms(extra)} of every {ms(facts.step_s)}.",
        confidence=0.9 if name else 0.65,
        category=Category.COMPUTE,
        gain=gain,
        because=(reason,),
        against=() if name else (Reason("a frozen teacher or encoder would look the same"),),
        fixes=(
            Fix("evaluate every N steps instead of each", gain),
            Fix("compute metrics from the training outputs", gain, cost="slightly different numbers (dropout on)"),
        ),
        avoid="Do not optimise the extra pass before asking whether it is needed.",
        optional=facts.is_optional(gain),
    )


# Evaluation that interrupts training, while only suspected.

CLUES = (
    above(
        change.STALL_AT_EVAL,
        0.6,
        "decisive, needed",
        "slow steps come with evaluations",
        "slow steps do not come with evaluations",
    ),
)
