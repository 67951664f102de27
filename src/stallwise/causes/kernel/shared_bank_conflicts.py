"""Lanes of a warp hit the same shared-memory bank, so one access becomes many.

## What it means
Shared memory has 32 banks of four bytes. When several lanes address different words of one bank, the request is split into
as many passes (wavefronts) as the most crowded bank needs.

## Why it costs
A request with a conflict of n ways occupies the shared-memory pipe n times as long, and everything behind it waits.

## What else looks so
Wide loads of 8 or 16 bytes a lane need two or four wavefronts by nature: that is no conflict. Conflicts in a prologue
that runs once do not matter.

## Fix
Pad rows by one word (32 x 33), swizzle the index (column xor row), or let lanes walk along rows; use `ldmatrix` layouts for
tensor-core tiles.

## How the gain is found
The share of excess wavefronts times the part of the time the shared-memory pipe is the limit.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.counters import Counters
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence

MANY = 0.25  # of the wavefronts are conflicts; good kernels stay under 0.1, library stores reach 0.2
PRESSED = 0.45  # of L1 and shared-memory bandwidth

CLUES = (
    Clue((k.CONFLICT_SHARE,), lambda e: e.value(k.CONFLICT_SHARE) >= MANY, "strong", "shared memory has conflicts"),
)


@rule(k.CONFLICT_SHARE, per="kernel")
def shared_bank_conflicts(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    share = c.get(k.CONFLICT_SHARE)
    waits = c.get(k.STALL_MIO_THROTTLE) + c.get(k.STALL_SHORT_SCOREBOARD)
    pressed = c.get(k.L1_SHARE)
    if share < MANY or max(c.dram, c.tensor, c.get(k.FMA_SHARE)) >= 0.75:
        return None
    if pressed < PRESSED and waits < 0.3:
        return None
    ways = c.get(k.CONFLICT_WAYS)
    ways_text = f", {ways:.0f} ways" if ways >= 2 else ""
    part = max(pressed, waits)
    return Finding(
        headline=f"bank conflicts: {share:.0%} of the shared-memory wavefronts are repeats{ways_text}",
        confidence=0.93 if pressed >= 0.6 or waits >= 0.4 else 0.75,
        because=(
            c.reason(f"{share:.0%} of the wavefronts are excess{ways_text}", k.CONFLICT_SHARE, k.CONFLICT_WAYS),
            c.reason(f"L1 and shared memory run at {pressed:.0%}", k.L1_SHARE),
            *((c.reason(c.stall, k.TOP_STALL),) if c.stall else ()),
        ),
        gain=c.gain(0.5 * share * part, share * part, "the excess wavefronts over the time shared memory is the limit"),
        fixes=(
            Fix("pad each row by one word, or swizzle the column with the row", cost="a few bytes of shared memory"),
            Fix("use ldmatrix and its layout for tensor-core tiles"),
        ),
        avoid="Do not move the data back to global memory: conflicts cost passes, misses cost hundreds of cycles.",
    )
