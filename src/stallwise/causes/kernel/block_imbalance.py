"""Some blocks run far longer than others, and SMs that are done wait for them.

## What it means
Work is divided unevenly: ragged sequences, sparse rows, power-law bins. The SM that got the heavy blocks decides the time.

## Why it costs
Mean SM activity stays well under that of the busiest SM; the difference is idle silicon.

## What else looks so
A nearly empty last wave leaves SMs idle with equal blocks. A grid smaller than the chip leaves SMs without any block.

## Fix
Split heavy items over several blocks, sort by length and interleave, hand out work dynamically (an atomic counter or a
persistent kernel), or bucket by size.

## How the gain is found
The busiest SM's time against the mean: perfect balance would take the mean.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.counters import Counters
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence

UNEVEN = 0.12  # the mean SM stays this far under the busiest; equal blocks stay within a few per cent
IDLE = 0.15

CLUES = (Clue((k.SM_IMBALANCE,), lambda e: e.value(k.SM_IMBALANCE) >= UNEVEN, "fair", "SMs are unevenly busy"),)


@rule(k.TIME, per="kernel")
def block_imbalance(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    known = c.knows(k.SM_IMBALANCE)
    idle = 1 - c.get(k.SM_ACTIVE, 1.0)
    uneven = c.get(k.SM_IMBALANCE) if known else idle if idle >= IDLE else 0.0
    if uneven < UNEVEN or c.get(k.GRID_BLOCKS, 1e9) < c.get(k.SM_COUNT, 1.0) or c.dram >= 0.75:
        return None
    waves = c.get(k.WAVES, 3.0)
    tail = 1 - waves / -(-waves // 1) if waves >= 1 else 0.0
    if tail >= uneven:
        return None  # rounding up to whole waves explains it
    return Finding(
        headline=f"uneven blocks: a mean SM works {1 - uneven:.0%} of the busiest one's time",
        confidence=0.9 if known and uneven >= 0.25 else 0.72,
        because=(
            c.reason(f"mean SM activity {uneven:.0%} under the busiest SM", k.SM_IMBALANCE, k.SM_ACTIVE),
            c.reason(f"{waves:.1f} waves of blocks: rounding explains at most {tail:.0%}", k.WAVES),
        ),
        gain=c.gain(0.6 * uneven, uneven, "the mean SM's time against the busiest one's"),
        fixes=(
            Fix("split heavy items over several blocks, or hand out work from a counter"),
            Fix("sort items by size so that a wave holds similar ones"),
        ),
        avoid="Do not tune the inner loop: the slowest block sets the time.",
    )
