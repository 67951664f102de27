"""Attention writes its N x N scores to memory instead of keeping them on chip.

## What it means
Scores are computed by one batched product, then scaled, masked, normalised and dropped out by separate kernels, then
multiplied with the values. Each of these reads and writes a tensor of heads x N x N.

## Why it costs
Traffic and memory grow with the square of the sequence length, while a fused kernel grows linearly in memory and
never leaves the chip.

## What else looks so
At short lengths the scores are small and this is harmless. A softmax over classes or experts is no attention: no
batched products surround it.

## Fix
`scaled_dot_product_attention` (or FlashAttention), with the mask given as `is_causal` or in a form that keeps the
fused path; FlexAttention for unusual masks.

## How the gain is found
The time of everything between the two batched products around each softmax, forward and backward. The low end keeps a
fifth for the fused kernel's own work; the high end adds most of those products, which write and read the scores where
a fused kernel keeps them, and skips what the mask hides.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, WORTH_FIXING, StepFacts, ms, percent
from stallwise.evidence.catalog import gains
from stallwise.evidence.catalog import step as s
from stallwise.evidence.catalog.stated import FLASH_ATTENTION
from stallwise.evidence.evidence import Evidence

SKIPPED = 0.9  # of the products' time: a causal fused kernel took a fifth of it on an H200

CLUES = (
    Clue(
        (FLASH_ATTENTION,), lambda e: e.value(FLASH_ATTENTION) == 0, "fair, needed", "attention is not the fused kind"
    ),
)


@rule(s.SCORES_TIME, s.STEP_TIME)
def attention_materialized(evidence: Evidence) -> Finding | None:
    """Looks for the traffic around a softmax between batched products."""
    facts = StepFacts(evidence)
    scores, gemms = facts.seconds(s.SCORES_TIME), facts.seconds(s.SCORES_GEMM_TIME)
    if facts.share(scores) < NOTICEABLE:
        return None
    gain = facts.less_work(
        gains.FUSED_ATTENTION,
        0.8 * scores,
        scores + SKIPPED * gemms,
        "the traffic of the scores, and at best most of their products",
    )
    fused = facts.seconds(s.ATTENTION_TIME)
    return Finding(
        headline=f"Attention writes its scores to memory: {ms(scores)} of every {ms(facts.step_s)}.",
        confidence=0.93 if fused < 0.2 * scores else 0.8,
        category=facts.category_of(gains.FUSED_ATTENTION, scores + gemms),
        gain=gain,
        because=(
            facts.because(
                f"scaling, masking, softmax and casts between batched products take {percent(facts.share(scores))} of the {facts.unit}",
                s.SCORES_TIME,
            ),
            facts.because(
                "no fused attention kernel runs" if fused == 0 else f"fused attention runs only {ms(fused)}",
                s.ATTENTION_TIME,
            ),
        ),
        fixes=(
            Fix(
                "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)",
                gain,
                cost="a few lines",
                risk="numbers differ in the last bits",
            ),
            Fix("FlexAttention or FlashAttention for masks that SDPA does not fuse", gain, cost="a dependency"),
        ),
        avoid="Do not fuse the softmax alone: the scores would still travel.",
        explains=("elementwise-unfused", "layout-copies"),
        optional=facts.share(gain.high_s) < WORTH_FIXING,
    )
