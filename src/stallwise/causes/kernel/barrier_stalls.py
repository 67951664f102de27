"""Warps spend their time waiting for each other at barriers.

## What it means
Each `__syncthreads` holds a block until its slowest warp arrives. With large blocks and little work between barriers, waiting
is the largest reason not to issue.

## Why it costs
Issue slots stay empty while most warps stand at the barrier; other blocks could fill them, but few fit beside a big block.

## What else looks so
Tensor kernels wait at barriers by design while the pipe is full. Barriers after uneven work point at the uneven work.

## Fix
Fewer barriers (double buffering, warp shuffles in place of shared-memory reductions), smaller blocks so that several are
resident, named barriers or `cp.async` groups, warp-level reductions.

## How the gain is found
The barrier's part of the wait; a third to two thirds of it returns when barriers become rarer or blocks smaller.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.counters import Counters
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence

DOMINANT = 0.30  # of the cycles between two instructions

CLUES = (Clue((k.STALL_BARRIER,), lambda e: e.value(k.STALL_BARRIER) >= DOMINANT, "fair", "warps wait at barriers"),)


@rule(k.STALL_BARRIER, per="kernel")
def barrier_stalls(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    share = c.get(k.STALL_BARRIER)
    pipe = max(c.get(k.TENSOR_SHARE), c.get(k.FMA_SHARE), c.get(k.TOP_PIPE_SHARE))
    if share < DOMINANT or not c.is_stall("barrier") or pipe >= 0.6 or c.dram >= 0.75:
        return None
    if c.get(k.ISSUE_SHARE) >= 0.7:
        return None
    threads = c.get(k.BLOCK_THREADS)
    return Finding(
        headline=f"warps stand at barriers {share:.0%} of the time",
        confidence=0.88 if share >= 0.45 else 0.7,
        because=(
            c.reason(f"{share:.0%} of the cycles between two instructions of a warp are spent at a barrier", k.STALL_BARRIER),
            c.reason(f"issue slots {c.get(k.ISSUE_SHARE):.0%} in use; {threads:.0f} threads a block", k.ISSUE_SHARE,
                     k.BLOCK_THREADS),
        ),
        gain=c.gain(share / 3, share * 2 / 3, "a third to two thirds of the wait at barriers"),
        fixes=(
            Fix("fewer barriers: double buffering, warp shuffles for the last 32 elements"),
            Fix(f"smaller blocks than {threads:.0f} threads, so that other blocks issue meanwhile")
            if threads >= 512 else Fix("balance the work between barriers"),
        ),
        avoid="Do not add threads to the block: the barrier waits for more of them.",
    )  # fmt: skip
