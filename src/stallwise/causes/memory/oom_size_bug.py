"""The program asked for an impossible size.

## What it means
The request is many times the memory of any GPU: a product of wrong dimensions, an accidental broadcast, an overflowed or
uninitialised count in a native extension.

## Why it costs
The run dies at once; no memory setting can help.

## What else looks so
Attention scores over a very long sequence reach hundreds of gigabytes honestly; their size is heads x sequence squared.

## Fix
Print the shapes before the failing line; look for a broadcast of (n, 1) with (1, n), for swapped arguments, for a stale or
mismatched extension build.

## How the gain is found
There is none: it is a bug.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.failure import Failure
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence

CLUES = (Clue((m.REQUEST,), lambda e: Failure(e).absurd, "decisive, needed", "no device could hold the request"),)


@rule(m.REQUEST)
def oom_size_bug(evidence: Evidence) -> Finding | None:
    """Judges the failed allocation."""
    f = Failure(evidence)
    tensor = evidence.text(m.TENSOR)
    known = "sequence^2" in tensor or "logits" in tensor or f.phase in ("loss", "attention scores") or "copy" in tensor
    if known or not (f.absurd or f.oversized):
        return None
    times = f.request / max(f.capacity, 1.0) if f.capacity else 0.0
    much = f", {times:,.0f} times the device" if times else ""
    return Finding(
        headline=f"an impossible request: {f.show(m.REQUEST)}{much}",
        confidence=0.96 if times >= 20 else 0.8 if f.absurd else 0.65,
        because=(f.sizes(), *f.place()),
        fixes=(
            Fix("print the shapes before the failing line; look for a broadcast or swapped dimensions"),
            Fix("rebuild native extensions against this torch and CUDA", cost="minutes"),
        ),
        avoid="Do not tune memory: the size is wrong, not the space.",
        explains=("oom-activations", "oom-fragmentation"),
        blocking=True,
    )
