"""The kernel keeps its math pipe full: it is at the compute roof and healthy.

## What it means
One math pipe, or the issue slots, works at more than three quarters of its peak for the whole kernel.

## Why it costs
It does not: the time is the work. Only less work, or the same work on a faster pipe, is quicker.

## What else looks so
High SM "busy" with a low pipe share is not this: warps are resident and wait. A matrix product on ordinary cores can fill
the FMA pipe too and is still on the wrong pipe. Divergent warps fill issue slots with masked lanes.

## Fix
Nothing inside the kernel. Look for a cheaper algorithm, a lower precision, or work that need not be done.

## How the gain is found
The distance from the measured pipe share to full; a few per cent at most.
"""

from __future__ import annotations

from stallwise.doctor.findings.counters import AT_CEILING, Counters
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCU
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence

PIPE_FULL = 0.75  # of a math pipe; dependent issue and epilogues keep real kernels below 0.95
ISSUE_FULL = 0.88  # of the issue slots
GEMM_CERTAINTY = 0.7  # sure enough that it is a matrix product: then the tensor pipe is its ceiling, and no other
HALF_FED = 0.5  # of the tensor pipe: attention fills other pipes beside it; a product with less has no ceiling there
LANES = 24.0  # of 32: with fewer, the slots are full of masked work


@rule(k.SM_SHARE, per="kernel")
def compute_roof(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    pipes = {
        "tensor": c.get(k.TENSOR_SHARE), "FMA": c.get(k.FMA_SHARE), "ALU": c.get(k.ALU_SHARE),
        "XU": c.get(k.XU_SHARE), c.word(k.TOP_PIPE) or "busiest": c.get(k.TOP_PIPE_SHARE),
    }  # fmt: skip
    pipes.pop("FP64", None)
    name, share = max(pipes.items(), key=lambda item: item[1])
    blind = not c.knows(k.ISSUE_SHARE) and not share  # a short collection: only the SM's total is known
    if blind and c.get(k.SM_SHARE) >= AT_CEILING:
        name, share = "SM", c.get(k.SM_SHARE)
    if share < PIPE_FULL and c.get(k.ISSUE_SHARE) < ISSUE_FULL:
        return None
    if c.get(k.ACTIVE_THREADS, 32.0) < LANES or c.get(k.FP64_SHARE) >= share:
        return None
    if c.get(k.CONTRACTION) >= GEMM_CERTAINTY and c.tensor_known and c.tensor < HALF_FED:  # full, but of the wrong pipe
        return None
    if share < PIPE_FULL:
        name, share = "issue slots", c.get(k.ISSUE_SHARE)
    return Finding(
        headline=f"at the compute roof: {name} {share:.0%} busy",
        confidence=0.6 if blind else 0.92,
        because=(
            c.reason(f"{name} {share:.0%} of peak, DRAM {c.dram:.0%}", k.TOP_PIPE_SHARE, k.SM_SHARE, k.DRAM_SHARE),
        ),
        gain=c.gain(0.0, max(0.0, 1 - share), "what is left of the pipe"),
        fixes=(Fix("less work or a lower precision; nothing to win inside this kernel"),),
        not_here=(
            (c.reason(f"occupancy {c.get(k.ACHIEVED_OCCUPANCY):.0%}: enough, the pipe is full", k.ACHIEVED_OCCUPANCY),)
            if c.knows(k.ACHIEVED_OCCUPANCY)
            else ()
        ),
        avoid="Do not raise occupancy: the pipe has no free slots to fill.",
        optional=True,
        next=(NCU,) if blind else (),
    )
