"""Free memory exists, but in pieces that are each too small.

## What it means
The caching allocator holds segments it cannot give back because each still carries a live tensor; between those lie holes.
Together they would hold the request, no single one does.

## Why it costs
The run dies although the tensors fit. Sizes that vary from step to step (images, ragged text) make it worse with time.

## What else looks so
The message recommends `expandable_segments` in every case; only the arithmetic decides. When free plus unused memory is
less than the request, or the unused part is ordinary rounding, the model simply does not fit.

## Fix
Let segments grow and shrink (`expandable_segments:True`), pad inputs to a few sizes, allocate the largest case first, free
references before the big allocation.

## How the gain is found
Bytes reserved but unused, against the bytes that were lacking.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.failure import Failure
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import MEMORY_SNAPSHOT
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence

CLUES = (
    Clue((m.REQUEST, m.UNUSED_RESERVED), lambda e: Failure(e).fragmented, "strong, needed",
         "free pieces together exceed the request", "free pieces together do not explain it"),
    Clue((m.REQUEST, m.UNUSED_RESERVED, m.FREE), lambda e: Failure(e).fits_in_pieces, "required",
         "free and unused memory together hold the request", "free and unused memory together are less than the request"),
    Clue((m.REQUEST, m.FREE), lambda e: e.value(m.FREE) >= e.value(m.REQUEST), "forbids",
         "the free memory alone holds the request: nothing is in pieces"),
)  # fmt: skip


@rule(m.REQUEST, m.UNUSED_RESERVED)
def oom_fragmentation(evidence: Evidence) -> Finding | None:
    """Judges the failed allocation."""
    f = Failure(evidence)
    if not f.fragmented or f.foreign or f.absurd:
        return None
    hole = f.get(m.LARGEST_HOLE)
    because = [f.sizes()]
    because.append(f.reason(f"{f.show(m.UNUSED_RESERVED)} of reserved memory hold no tensor: with them the request fits",
                            m.UNUSED_RESERVED))  # fmt: skip
    if hole:
        holes = sum(int(t.meta.get("count", len(t))) for t in evidence.table("memory.holes"))
        because.append(f.reason(f"{holes} holes, the largest of {f.show(m.LARGEST_HOLE)}", m.LARGEST_HOLE))
    ample = f.get(m.UNUSED_RESERVED) >= 1.5 * f.request
    return Finding(
        headline=f"memory is split: {f.show(m.UNUSED_RESERVED)} unused in pieces, {f.show(m.REQUEST)} asked at once",
        confidence=0.95 if ample or hole else 0.85,
        because=(*because, *f.composition(), *f.place()),
        fixes=(
            Fix("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", worth=f"makes {f.show(m.UNUSED_RESERVED)} usable",
                cost="one environment variable", risk="rarely: slower first steps"),
            Fix("pad inputs to a few sizes and run the largest first", cost="a few lines"),
            *f.plan()[1:3],
        ),
        avoid="Do not shrink the model or the batch first: the tensors fit.",
        next=(MEMORY_SNAPSHOT,) if not hole else (),
        explains=("oom-activations",),
        blocking=True,
    )  # fmt: skip
