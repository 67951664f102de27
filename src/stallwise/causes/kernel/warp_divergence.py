"""Lanes of a warp go different ways, so most of each instruction is masked.

## What it means
A warp executes one instruction for 32 lanes. After a branch that splits them, each side runs with the other lanes masked; in
loops of unequal length the warp runs as long as its slowest lane.

## Why it costs
Issue slots and pipes look full, but with six of 32 lanes at work only a fifth of the work is useful.

## What else looks so
A predicated tail in the last blocks lowers the average a little and costs nothing. Early exit of whole warps is free.

## Fix
Sort or bin the work so that neighbours take the same way; move the branch outside (one kernel a case); replace the branch
by arithmetic; let a warp share one item instead of one item a lane.

## How the gain is found
Idle lanes over 32, times the part of the time in which issue or math is the limit.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.counters import Counters
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence

LANES = 32.0
FEW = 22.0  # lanes at work; boundary handling alone rarely brings a kernel under 26

CLUES = (
    Clue(
        (k.ACTIVE_THREADS,),
        lambda e: e.value(k.ACTIVE_THREADS) < FEW,
        "strong, needed",
        "few lanes of a warp are at work",
    ),
)


@rule(k.ACTIVE_THREADS, per="kernel")
def warp_divergence(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    lanes = c.get(k.ACTIVE_THREADS, LANES)
    if lanes >= FEW or c.dram >= 0.75:
        return None
    idle = 1 - lanes / LANES
    busy = max(c.math, c.get(k.ISSUE_SHARE), c.get(k.SM_SHARE))
    # Far from the compute roof the idle lanes matter less: something else holds the warps.
    confidence = 0.95 if busy >= 0.5 else 0.8 if busy >= 0.2 else 0.55
    return Finding(
        headline=f"divergent warps: {lanes:.1f} of 32 lanes at work",
        confidence=confidence,
        because=(
            c.reason(f"{lanes:.1f} lanes active in an average instruction", k.ACTIVE_THREADS, k.UNMASKED_THREADS),
            c.reason(f"issue slots {c.get(k.ISSUE_SHARE):.0%} busy, mostly for masked lanes", k.ISSUE_SHARE),
        ),
        gain=c.gain(0.5 * idle * max(busy, 0.4), idle * max(busy, 0.4), "idle lanes over the time issue is the limit"),
        fixes=(
            Fix("sort or bin items so that a warp's lanes take the same path", cost="a sort, often amortised"),
            Fix("give a warp one item and let its lanes share it"),
            Fix("replace short branches by arithmetic selection"),
        ),
        not_here=(c.reason(f"SM throughput {c.get(k.SM_SHARE):.0%}: full of masked work", k.SM_SHARE),)
        if c.get(k.SM_SHARE) >= 0.8
        else (),
        avoid="Do not read the high SM throughput as a healthy kernel.",
        explains=("compute-roof",),
    )
