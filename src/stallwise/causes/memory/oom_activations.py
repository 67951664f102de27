"""Activations kept for the backward pass, or for a long prompt, exceed the memory.

## What it means
Every layer keeps what its backward pass needs; the total grows with batch x sequence x layers. In serving the same
happens without backward: one prefill of many tokens needs wide temporary tensors.

## Why it costs
The run dies at the first large batch, or works until a longer sequence comes.

## What else looks so
Logits, attention scores and optimizer states fail with requests of their own typical size and at their own place. A leak
fails later each time with the same batch.

## Fix
Smaller micro-batch with accumulation; recompute activations; mixed precision; shorter or packed sequences, batches bucketed by length where lengths vary; sequence or
tensor parallelism; in serving a smaller prefill budget.

## How the gain is found
The bytes by category at the peak, or what the message leaves for them after weights and states.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.failure import Failure
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import MEMORY_SNAPSHOT
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence
from stallwise.units import Unit, show

PHASES = ("forward", "backward", "warm-up", "")
DOMINANT = 0.5  # of the peak

CLUES = (
    Clue((m.PHASE,), lambda e: e.text(m.PHASE) in PHASES, "hint", "it failed in a forward or backward pass"),
    Clue((m.REQUEST, m.FREE), lambda e: e.value(m.FREE) >= e.value(m.REQUEST), "forbids",
         "the free memory alone holds the request: nothing filled the card"),
)  # fmt: skip


@rule(m.FAILED)
def oom_activations(evidence: Evidence) -> Finding | None:
    """Judges the failed allocation."""
    f = Failure(evidence)
    if f.fragmented or f.foreign or f.absurd or f.get(m.KV_NO_ROOM) or f.phase not in PHASES:
        return None
    peak = f.get(m.PEAK)
    share = f.get(m.ACTIVATIONS) / peak if peak else 0.0
    single = f.get(m.LARGEST_TENSOR) > 4 * max(f.get(m.NEXT_TENSOR), 1.0) and f.get(m.LARGEST_TENSOR) > 0.25 * peak > 0
    if f.oversized and not share:
        return None  # one tensor larger than the device is a matter of its shape
    if single or (f.knows(m.ACTIVATIONS) and share < DOMINANT):
        return None
    places = []
    for table in evidence.table("memory.peak"):
        rows = zip(table.columns["category"], table.columns["place"], table.columns["size_bytes"], strict=True)
        top = [f"{where} {show(float(size), Unit.BYTE)}" for kind, where, size in rows if kind == "activations"][:4]
        places.append(f.reason(f"kept by {'; '.join(top)}", m.ACTIVATIONS))
    because = [f.sizes(), *f.composition(), *f.place(), *places]
    if share:
        because.insert(
            1, f.reason(f"activations make {share:.0%} of the {f.show(m.PEAK)} alive", m.ACTIVATIONS, m.PEAK)
        )
    confidence = 0.95 if share >= 0.7 else 0.62 if f.phase in ("forward", "backward", "warm-up") else 0.5
    if f.inexplicable:
        confidence = 0.3
        because.append(f.reason(f"{f.show(m.FREE)} were free: the sizes alone do not explain the failure (a limit of the process "
                                "or of the driver, or another process at that moment)", m.FREE))  # fmt: skip
    serving = f.phase == "warm-up"
    first = Fix(
        "lower the prefill budget (max batch or prefill tokens)",
        worth="in proportion",
        cost="longer queues for long prompts",
    )
    plan = f.plan("micro-batch") or (
        Fix("micro-batch halved, accumulate twice", worth="halves the activations"),
        Fix("recompute activations (checkpointing)", worth="frees most of them", cost="25 to 33% more compute"),
    )
    return Finding(
        headline="activations of one long prefill do not fit"
        if serving
        else "activations do not fit" + (f": {f.show(m.ACTIVATIONS)} of {f.show(m.PEAK)}" if share else ""),
        confidence=confidence,
        because=tuple(because),
        fixes=(first, *_serving_fixes()) if serving else plan,
        not_here=(f.reason(f"{f.show(m.UNUSED_RESERVED)} reserved but unused: ordinary rounding", m.UNUSED_RESERVED),)
        if f.knows(m.UNUSED_RESERVED)
        else (),
        avoid="Do not set expandable_segments and retry: there is nothing to defragment.",
        next=(MEMORY_SNAPSHOT,) if not share else (),
        blocking=True,
    )


def _serving_fixes() -> tuple[Fix, ...]:
    return (
        Fix("quantise the weights (8 or 4 bit)", worth="leaves more beside them", cost="accuracy; a conversion"),
        Fix("more GPUs (tensor parallel)", worth="splits weights and activations", cost="hardware"),
    )
