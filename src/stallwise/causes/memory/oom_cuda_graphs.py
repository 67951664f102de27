"""Capturing CUDA graphs needs memory that was already given away.

## What it means
An engine fills the GPU with weights and KV cache up to its limit and then captures graphs, each with buffers in a private
pool. What is left is too little.

## Why it costs
The server dies at the end of a long start, with a request of a few hundred megabytes.

## What else looks so
A cache that does not fit fails earlier, with its own message. Growing private pools in training come from graphs captured
for many shapes.

## Fix
Leave more outside (`gpu_memory_utilization` lower by 0.03 to 0.05), capture fewer batch sizes, or run eagerly.

## How the gain is found
1 to 3 GB a GPU for a full set of captured sizes; the request says what one more needs.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.failure import Failure
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence

POOLS = 0.2  # of the allocated memory in private pools

CLUES = (
    Clue((m.PHASE,), lambda e: e.text(m.PHASE) == "capture", "decisive, needed", "it failed while capturing graphs"),
)


@rule(m.FAILED)
def oom_cuda_graphs(evidence: Evidence) -> Finding | None:
    """Judges the failed allocation."""
    f = Failure(evidence)
    pools = f.get(m.PRIVATE_POOLS) / max(f.get(m.ALLOCATED), 1.0)
    capture = f.phase == "capture"
    if (not capture and (pools < POOLS or f.fragmented)) or f.foreign or f.absurd:
        return None
    because = [f.sizes(), *f.place()]
    if f.get(m.PRIVATE_POOLS):
        because.append(f.reason(f"{f.show(m.PRIVATE_POOLS)} are held in private pools of graphs", m.PRIVATE_POOLS))
    return Finding(
        headline="no memory left to capture CUDA graphs" if capture else "private pools of CUDA graphs fill the memory",
        confidence=0.93 if capture else 0.65,
        because=tuple(because),
        fixes=(
            Fix("lower gpu_memory_utilization by 0.03 to 0.05", worth="1 to 3 GB for graphs", cost="a little KV cache"),
            Fix("capture fewer batch sizes", cost="eager speed for the sizes left out"),
            Fix("enforce_eager (no graphs)", worth="all of it", cost="slower decode at small batches"),
        ),
        not_here=(f.reason(f"{f.show(m.UNUSED_RESERVED)} reserved but unused: ordinary rounding", m.UNUSED_RESERVED),)
        if f.knows(m.UNUSED_RESERVED) else (),
        avoid="Do not raise gpu_memory_utilization: that takes the memory the graphs need.",
        explains=("oom-activations", "oom-kv-cache"),
        blocking=True,
    )  # fmt: skip
