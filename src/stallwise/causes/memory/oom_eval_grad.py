"""Evaluation keeps the autograd graph, so memory grows with every validation batch.

## What it means
Validation runs without `no_grad`, or appends outputs that still hang on their graph. Each batch leaves its activations
behind.

## Why it costs
Training fits, the first validation dies.

## What else looks so
A larger evaluation batch fails at once, without growth. Collected predictions on the GPU grow slowly, by outputs alone.

## Fix
`torch.inference_mode()` around validation; `.detach().cpu()` on what is collected; a smaller evaluation batch.

## How the gain is found
The memory gained a validation batch: all of it is avoidable.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.failure import Failure
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import MEMORY_SNAPSHOT
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence

CLUES = (Clue((m.PHASE,), lambda e: e.text(m.PHASE) == "evaluation", "decisive, needed", "it failed in validation"),)


@rule(m.FAILED)
def oom_eval_grad(evidence: Evidence) -> Finding | None:
    """Judges the failed allocation."""
    f = Failure(evidence)
    if f.phase != "evaluation" or f.fragmented or f.foreign or f.absurd:
        return None
    growth = f.get(m.EVAL_GROWTH)
    because = [f.sizes(), *f.place()]
    if growth:
        because.append(
            f.reason(
                f"memory was flat in training and gained {f.show(m.EVAL_GROWTH)} over validation batches", m.EVAL_GROWTH
            )
        )
    return Finding(
        headline="validation keeps the graph: memory grows with each batch" if growth else "validation does not fit",
        confidence=0.93 if growth else 0.72,
        because=tuple(because),
        fixes=(
            Fix("torch.inference_mode() (or no_grad) around validation", worth="all activations of validation", cost="one line"),
            Fix("collect outputs with .detach().cpu()", worth="what piles up over batches"),
            Fix("a smaller evaluation batch"),
        ),
        avoid="Do not shrink the training batch: training fits.",
        next=() if growth else (MEMORY_SNAPSHOT,),
        explains=("memory-leak", "oom-activations"),
        blocking=True,
    )  # fmt: skip
