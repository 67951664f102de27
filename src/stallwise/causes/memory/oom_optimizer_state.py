"""Weights, gradients and optimizer states together do not fit.

## What it means
Adam keeps two more numbers for each parameter, and mixed precision often a third in fp32. They are made in the first
optimizer step, after a forward and backward pass that fit.

## Why it costs
The run dies at the end of its first step, whatever the batch size.

## What else looks so
Activations grow with the batch and fail in forward or backward. A foreach implementation also needs a temporary copy.

## Fix
8-bit states; a fused or in-backward optimizer; sharding of states over GPUs (ZeRO, FSDP); offload; adapters instead of all
weights.

## How the gain is found
Bytes a parameter: 16 for fp32 Adam with gradients, 12 less with 8-bit states and 16-bit weights.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.failure import Failure
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.catalog import stated
from stallwise.evidence.evidence import Evidence

CLUES = (
    Clue((m.PHASE,), lambda e: e.text(m.PHASE) == "optimizer", "decisive", "it failed in the optimizer's first step"),
    Clue((stated.OOM_IN_OPTIMIZER,), lambda e: bool(e.value(stated.OOM_IN_OPTIMIZER)), "decisive",
         "it failed in the optimizer"),
)  # fmt: skip


@rule(m.FAILED)
def oom_optimizer_state(evidence: Evidence) -> Finding | None:
    """Judges the failed allocation."""
    f = Failure(evidence)
    if f.phase != "optimizer" or f.fragmented or f.foreign or f.absurd:
        return None
    parameters = f.get(stated.PARAMETERS)
    because = [f.sizes(), *f.place()]
    if parameters and f.knows(m.ALLOCATED):
        each = f.get(m.ALLOCATED) / parameters
        because.append(
            f.reason(
                f"{each:.1f} bytes a parameter are already allocated ({parameters / 1e9:.1f} B parameters)",
                stated.PARAMETERS,
                m.ALLOCATED,
            )
        )
    return Finding(
        headline="optimizer states do not fit beside weights and gradients",
        confidence=0.93,
        because=(*because, *f.composition()),
        fixes=f.plan("8-bit", "sharding", "offload") or (
            Fix("8-bit optimizer states", worth="frees 73% of them", cost="one import"),
            Fix("sharding of states over GPUs (FSDP or ZeRO)", worth="all but one share", cost="collectives each step"),
        ),
        avoid="Do not lower the batch: the states do not depend on it.",
        blocking=True,
    )  # fmt: skip
