"""A sharded run needs more at its peak than its states: a gathered layer, and activations a GPU.

## What it means
FSDP and ZeRO-3 keep a part of each weight, but gather a whole layer (or several, with prefetch) while it runs. When a layout
trades tensor parallelism for data parallelism, activations a GPU grow although the states do not.

## Why it costs
The states fit on paper and the run still dies when a layer is gathered or in the first forward pass.

## What else looks so
Optimizer states do not grow with such a change. Fragmentation shows as unused reserve.

## Fix
Wrap smaller units, limit prefetch (`limit_all_gathers`), reshard after forward, keep sequence parallelism, recompute.

## How the gain is found
Largest wrapped unit x (1 + prefetch) for the gather; activations x (old TP / new TP) for the layout.
"""

from __future__ import annotations

from stallwise.evidence.catalog import memory as m
from stallwise.evidence.catalog import stated
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import Clue
from stallwise.findings.failure import Failure
from stallwise.findings.finding import Finding, Fix
from stallwise.findings.rule import rule


def _sharded(evidence: Evidence) -> bool:
    return evidence.text(stated.SHARDING).lower() not in ("", "none", "no", "0")


CLUES = (
    Clue((m.PHASE,), lambda e: e.text(m.PHASE) == "gather", "strong", "it failed while gathering a sharded layer"),
    Clue((stated.SHARDING,), _sharded, "hint", "states are sharded"),
)


@rule(m.FAILED)
def oom_sharding_peak(evidence: Evidence) -> Finding | None:
    """Judges the failed allocation."""
    f = Failure(evidence)
    if f.phase != "gather" or f.fragmented or f.foreign or f.absurd:
        return None
    return Finding(
        headline=f"gathering a sharded layer does not fit: {f.show(m.REQUEST)} asked",
        confidence=0.8,
        because=(f.sizes(), *f.place()),
        fixes=(
            Fix("wrap smaller units and limit prefetch", worth="one gathered unit less", cost="exposed collectives"),
            Fix("reshard after forward", worth="units gathered together", cost="a second gather in backward"),
            *f.plan("recompute")[:1],
        ),
        avoid="Do not shard the optimizer further: the peak is the gathered layer and its activations.",
        blocking=True,
    )
