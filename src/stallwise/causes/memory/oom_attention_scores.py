"""Attention writes its full score matrix, heads x sequence x sequence, to memory.

## What it means
Attention computed as matmul, softmax, matmul keeps a score for every pair of tokens and head, often twice (before and
after softmax), and again in fp32.

## Why it costs
It grows with the square of the sequence: 32 heads at 16k tokens are 17 GB a copy in 16 bit.

## What else looks so
A mask of sequence x sequence is one head's worth. Logits grow with the vocabulary instead.

## Fix
Fused attention (`scaled_dot_product_attention`, FlashAttention), which never writes the scores; drop what forces the slow
path (a dense mask tensor, returned attention weights, an unsupported head size or type).

## How the gain is found
Micro-batch x heads x sequence squared x bytes, for each copy.
"""

from __future__ import annotations

from stallwise.causes.memory._scores_by_layout import scores_by_layout
from stallwise.doctor.findings.clue import Clue, above, yes
from stallwise.doctor.findings.failure import Failure
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.catalog import fabric, stated
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence


def _more_tp(evidence: Evidence) -> tuple[Fix, ...]:
    """Heads are split over tensor parallelism: the layout that fits has fewer on a rank."""
    degrees = sorted({f.number for f in evidence.all(fabric.TP_SIZE)})
    if len(degrees) < 2:
        return ()
    few, many = degrees[0], degrees[-1]
    return (Fix(f"Tensor parallelism {few:.0f} -> {many:.0f}", worth=f"{many / few:.3g}x fewer heads a rank, and scores with them",
                cost="more all-reduce traffic a layer", risk="only inside one NVLink domain"),)  # fmt: skip


@rule(m.FAILED)
def oom_attention_scores(evidence: Evidence) -> Finding | None:
    """Judges the failed allocation."""
    f = Failure(evidence)
    exact = "sequence^2" in evidence.text(m.TENSOR)
    if not (exact or f.phase == "attention scores") or f.fragmented or f.foreign:
        return None
    because = [f.sizes(), *f.place()]
    if exact:
        because.insert(1, f.reason(f"the request is {evidence.text(m.TENSOR)}", m.TENSOR, m.REQUEST))
    because += scores_by_layout(evidence)
    return Finding(
        headline=f"attention scores do not fit: {f.show(m.REQUEST)} for one score matrix",
        confidence=0.95 if exact else 0.8,
        because=tuple(because),
        fixes=(
            Fix("fused attention (scaled_dot_product_attention, FlashAttention)", worth="the scores are never written",
                cost="remove what forces the slow path"),
            *(f.plan("micro-batch")[:1] if evidence.value(stated.MICROBATCH, 2.0) > 1 else ()),
            *_more_tp(evidence),
        ),
        avoid="Do not recompute: the score matrix of one layer already does not fit.",
        explains=("oom-activations",),
        blocking=True,
    )  # fmt: skip


# Attention scores written out, while only suspected.
CLUES = (
    Clue(
        (m.TENSOR,), lambda e: "sequence^2" in e.text(m.TENSOR), "decisive", "the request is heads x sequence squared"
    ),
    yes(stated.FLASH_ATTENTION, "against", "attention is fused and writes no scores", "attention writes its scores"),
    above(
        stated.SEQUENCE,
        8191,
        "hint when seen",
        "the sequence is long: scores grow with its square",
        "the sequence is short",
    ),
)
