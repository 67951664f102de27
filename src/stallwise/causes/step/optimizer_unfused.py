"""The optimizer, or a loop beside it, runs several small kernels for every tensor.

## What it means
Plain Adam does about ten elementwise operations per parameter tensor. With hundreds of tensors that is thousands of
launches at the end of each step, each on little data. Running averages of the weights, target networks and gradients that
are scaled by hand do the same in loops beside the optimizer.

## Why it costs
Small models pay in launches (the device idles between them), large ones in traffic: every operation reads and writes
the states again, where a fused step does it once.

## What else looks so
A multi-tensor (foreach) or fused optimizer takes few, long kernels and is at the memory roof: that is its healthy
state.

## Fix
`fused=True` in the optimizer's constructor (or `foreach=True`), or compile the optimizer's step. Loops over tensors become
one call that takes them all (`torch._foreach_lerp_`, `AveragedModel` with `multi_avg_fn`).

## How the gain is found
The optimizer's span on the device less a third of its kernels' time (a fused step moves about a third of the bytes).
The low end takes only half of the idle time inside it.
"""

from __future__ import annotations

from stallwise.doctor.findings.finding import Finding, Fix, Gain
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, ms, percent
from stallwise.evidence.catalog import gains
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

MANY = 100  # kernels a step: a fused optimizer needs a few dozen at most, whatever the model
FUSED = 0.5  # of its time in multi-tensor kernels: then it is fused already
REMAINS = 0.34  # of its busy time: a fused step reads four and writes three arrays once, plain Adam does so for ten operations


@rule(s.OPTIMIZER_KERNELS, s.OPTIMIZER_SPAN, s.STEP_TIME)
def optimizer_unfused(evidence: Evidence) -> Finding | None:
    """Looks for many single-tensor kernels of the optimizer, or of loops beside it."""
    facts = StepFacts(evidence)
    kernels, span = facts.number(s.OPTIMIZER_KERNELS), facts.seconds(s.OPTIMIZER_SPAN)
    if kernels < MANY or facts.number(s.OPTIMIZER_FUSED_SHARE) >= FUSED or facts.share(span) < NOTICEABLE:
        return _walked(facts)
    idle, busy = facts.seconds(s.OPTIMIZER_IDLE), facts.seconds(s.OPTIMIZER_TIME)
    gain = _gain(facts, idle, busy, "the optimizer's span less what a fused step needs")
    return Finding(
        headline=f"The optimizer launches {kernels:.0f} small kernels and takes {ms(span)} of every {ms(facts.step_s)}.",
        confidence=0.88,
        category=Category.LAUNCH_GAP if idle > busy else Category.COMPUTE,
        gain=gain,
        because=(
            facts.because(
                f"{kernels:.0f} kernels a {facts.unit}, {percent(facts.number(s.OPTIMIZER_FUSED_SHARE))} of their time in multi-tensor ones",
                s.OPTIMIZER_KERNELS,
            ),
            facts.because(f"the device idles {ms(idle)} between them", s.OPTIMIZER_IDLE),
        ),
        fixes=(
            Fix(
                "fused=True in the optimizer's constructor",
                gain,
                cost="one argument",
                risk="none for Adam and SGD on one device type",
            ),
            Fix("torch.compile the optimizer's step", gain, cost="compile time"),
        ),
        avoid="Do not lower the precision of the states for speed before fusing.",
        optional=facts.is_optional(gain),
    )


def _walked(facts: StepFacts) -> Finding | None:
    kernels, span, idle = (
        facts.number(s.WALKED_KERNELS), facts.seconds(s.WALKED_SPAN), facts.seconds(s.WALKED_IDLE)
    )  # fmt: skip
    if kernels < MANY or facts.share(span) < NOTICEABLE:
        return None
    busy = max(span - idle, 0.0)
    gain = _gain(facts, idle, busy, "the loops' span less what one call for all tensors needs")
    return Finding(
        headline=f"Tensors are updated one by one beside the optimizer: {kernels:.0f} small kernels take {ms(span)} of every {ms(facts.step_s)}.",
        confidence=0.8,
        category=Category.LAUNCH_GAP if idle > busy else Category.COMPUTE,
        gain=gain,
        because=(
            facts.because(
                f"{kernels:.0f} kernels a {facts.unit} in runs of the same few in-place operators", s.WALKED_KERNELS
            ),
            facts.because(f"the device idles {ms(idle)} between them", s.WALKED_IDLE),
        ),
        fixes=(
            Fix(
                "one call for all tensors (torch._foreach_lerp_, AveragedModel with get_ema_multi_avg_fn, zero_grad(set_to_none=True))",
                gain,
                cost="a few lines",
            ),
            Fix(
                "update every few steps, with the factor to that power",
                gain,
                cost="one condition",
                risk="a coarser average",
            ),
        ),
        optional=facts.is_optional(gain),
    )


def _gain(facts: StepFacts, idle_s: float, busy_s: float, basis: str) -> Gain:
    low_s, high_s = 0.5 * idle_s + 0.3 * busy_s, idle_s + (1 - REMAINS) * busy_s
    return facts.replayed(gains.FUSED_OPTIMIZER, low_s, high_s, basis)
