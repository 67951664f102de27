"""The logits, tokens x vocabulary, or their fp32 copy do not fit.

## What it means
The last linear layer makes one number for each token and word. With a vocabulary of 128k and 80k tokens that is 20 GB in
16 bit, and the loss makes an fp32 copy and a gradient of the same size.

## Why it costs
It is a spike at the end of the forward pass that everything else must leave room for.

## What else looks so
Activations of the layers grow with the number of layers; this one does not. Attention scores grow with the square of the
sequence.

## Fix
A fused or chunked linear-and-cross-entropy that never holds all logits; compute logits only where labels count; keep the
loss in chunks; in serving cap the tokens that get logits (last token only, smaller sampler warm-up).

## How the gain is found
Tokens x vocabulary x bytes, times the copies that are alive together.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.failure import Failure
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import MEMORY_SNAPSHOT
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence

DWARFS = 4.0  # times the next largest tensor: nothing else in a model stands out so
LARGE = 0.2  # of the device

CLUES = (
    Clue((m.PHASE,), lambda e: e.text(m.PHASE) == "loss", "strong", "it failed in the loss"),
    Clue((m.TENSOR,), lambda e: "vocab (" in e.text(m.TENSOR) or "logits" in e.text(m.TENSOR), "decisive",
         "the request is tokens x vocabulary"),
)  # fmt: skip


@rule(m.FAILED)
def oom_logits(evidence: Evidence) -> Finding | None:
    """Judges the failed allocation."""
    f = Failure(evidence)
    tensor = evidence.text(m.TENSOR)
    exact = "logits" in tensor
    largest, following = f.get(m.LARGEST_TENSOR), f.get(m.NEXT_TENSOR)
    spike = largest > DWARFS * max(following, 1.0) and largest >= LARGE * max(f.capacity, 1.0) and "copy" in tensor
    in_loss = f.phase == "loss"
    if not (exact or spike or in_loss) or f.fragmented or f.foreign:
        return None
    if f.absurd and not (exact or spike):
        return None
    confidence = 0.96 if exact else 0.9 if spike else 0.85 if f.request >= 0.02 * max(f.capacity, 1.0) else 0.6
    because = [f.sizes(), *f.place()]
    if tensor:
        because.insert(1, f.reason(f"the request is {tensor}", m.TENSOR, m.REQUEST))
    if spike:
        because.append(
            f.reason(
                f"one tensor of {f.show(m.LARGEST_TENSOR)} from {evidence.text(m.LARGEST_PLACE)} dwarfs the rest",
                m.LARGEST_TENSOR,
            )
        )
    return Finding(
        headline=f"logits do not fit: {f.show(m.REQUEST)} asked in the last layer or the loss",
        confidence=confidence,
        because=(*because, *f.composition()),
        fixes=f.plan("fused") or (
            Fix("fused or chunked linear and cross entropy", worth="frees nearly all of the logits", cost="one import"),
            Fix("micro-batch halved, accumulate twice", worth="halves them"),
        ),
        avoid="Do not recompute layers first: the logits are not among what recomputing frees.",
        next=() if exact or spike else (MEMORY_SNAPSHOT,),
        explains=("oom-activations",),
        blocking=True,
    )  # fmt: skip
