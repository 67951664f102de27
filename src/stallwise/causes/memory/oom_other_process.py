"""Another process holds the memory.

## What it means
The device is full, but this process has only a small part of it. The rest belongs to a second job, a notebook, a display
server, or a dead process whose memory was never returned.

## Why it costs
No change to this program can help.

## What else looks so
Memory outside the allocator but inside this process (CUDA context, libraries, graphs) is counted as its own.

## Fix
Find the holder (`nvidia-smi`, `fuser -v /dev/nvidia*`), end it or wait; for a zombie restart its parent or reset the GPU.

## How the gain is found
Total minus free minus this process.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.failure import Failure
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NVIDIA_SMI_Q
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence

MOST_NAMED = 5  # holders
CLUES = (
    Clue(
        (m.ELSEWHERE,),
        lambda e: Failure(e).foreign,
        "decisive, needed",
        "other processes hold a good part of the device",
    ),
)


@rule(m.ELSEWHERE)
def oom_other_process(evidence: Evidence) -> Finding | None:
    """Judges the failed allocation."""
    f = Failure(evidence)
    if not f.foreign or f.absurd:
        return None
    mostly = f.get(m.ELSEWHERE) >= 0.4 * f.capacity
    return Finding(
        headline=f"other processes hold {f.show(m.ELSEWHERE)} of {f.show(m.CAPACITY)}",
        confidence=0.96 if mostly else 0.78,
        because=(
            f.sizes(),
            _holders(evidence) or f.reason(f"this process uses {f.show(m.PROCESS_USE)}, {f.show(m.FREE)} is free: "
                                           f"{f.show(m.ELSEWHERE)} is elsewhere", m.PROCESS_USE, m.CAPACITY),
            *f.place(),
        ),
        fixes=(
            Fix("find and end the holder: nvidia-smi; sudo fuser -v /dev/nvidia*", worth=f"frees {f.show(m.ELSEWHERE)}"),
            Fix("for a dead process: restart its parent, or nvidia-smi --gpu-reset", cost="stops every job on that GPU"),
        ),
        avoid="Do not shrink the model: it is not this program that fills the GPU.",
        next=(NVIDIA_SMI_Q,),
        explains=("oom-activations", "oom-fragmentation", "oom-optimizer-state"),
        blocking=True,
    )  # fmt: skip


def _holders(evidence: Evidence) -> Reason | None:
    """Who holds the card, where it lists them."""
    listed = sorted(evidence.all(m.LISTED_USE), key=lambda f: -f.number)
    holders = ", ".join(f"{f.note}: {f}" if f.number else f.note for f in listed[:MOST_NAMED])
    return Reason.of(f"on the card: {holders}", *listed[:MOST_NAMED]) if holders else None
