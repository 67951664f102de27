"""Chains of small pointwise kernels read and write memory again and again.

## What it means
Every add, scale, cast, activation and norm is a kernel of its own that reads its input from memory and writes its
output back. A chain of n such kernels moves the same tensor n times.

## Why it costs
These kernels are limited by memory, not arithmetic. Fused into one, a chain costs about as much as its longest
member.

## What else looks so
A compiled model has fused them already. Attention scores in memory are `attention-materialized`; layout copies have
their own page.

## Fix
`torch.compile` fuses chains by itself. Where it cannot run: fused implementations of norm, activation, rotary
embedding, loss and optimizer.

## How the gain is found
For each chain in launch order, its time less that of its longest kernel. The low end takes half (breaks, views and
reductions keep some apart); the high end also takes half of the lone pointwise kernels that can go into a
neighbouring product. On the H200 the prediction for a healthy eager step was 5.6 to 11.5 ms; compiling it won 9.4.
"""

from __future__ import annotations

from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, ms, percent
from stallwise.evidence.catalog import gains
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

# An ordinary eager transformer wins up to a fifth of its step by fusion and is not broken. Above a quarter, chains were added that
# the architecture does not ask for.
BEYOND_ORDINARY = 0.25


@rule(s.FUSION_SAVING, s.STEP_TIME)
def elementwise_unfused(evidence: Evidence) -> Finding | None:
    """Looks for time that fusion would win."""
    facts = StepFacts(evidence)
    low, high = facts.range_of(s.FUSION_SAVING)
    saving = facts.seconds(s.FUSION_SAVING)
    if facts.share(saving) < NOTICEABLE:
        return None
    gain = facts.less_work(
        gains.FUSE,
        low,
        high,
        "chains of pointwise kernels cost their longest member when fused; half of that is certain",
    )
    pointwise = facts.seconds(s.POINTWISE_TIME)
    busy = facts.seconds(s.BUSY_TIME)
    ordinary = facts.share(saving) < BEYOND_ORDINARY
    return Finding(
        headline=f"Unfused pointwise kernels take {ms(pointwise)} of every {ms(facts.step_s)}."
        if not ordinary
        else f"Compiling would fuse pointwise kernels ({ms(pointwise)} of {ms(facts.step_s)}).",
        confidence=0.88,
        category=Category.COMPUTE,
        gain=gain,
        because=(
            facts.because(
                f"{percent(pointwise / busy if busy else 0)} of the device's busy time is elementwise, cast and layout work",
                s.POINTWISE_TIME,
            ),
            facts.because(
                f"chains of {facts.number(s.CHAIN_LENGTH):.0f} kernels in a row ({facts.word(s.CHAIN_OPERATORS)})",
                s.CHAIN_LENGTH,
            ),
        ),
        fixes=(
            Fix("torch.compile(model)", gain, cost="minutes of compile time", risk="recompiles if shapes change"),
            Fix("fused norm, activation, rotary embedding and loss kernels", gain, cost="library calls"),
        ),
        avoid="Do not tune the matrix products: they are not where this time goes.",
        optional=ordinary,
    )
