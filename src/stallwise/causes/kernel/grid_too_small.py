"""The launch has fewer blocks than the GPU has multiprocessors, so part of the chip gets nothing.

## What it means
A block runs on one SM. With fewer blocks than SMs, or barely more than one, some SMs stay empty for the whole kernel.

## Why it costs
Eight blocks on 132 SMs use 6% of the chip, however good the code inside.

## What else looks so
A persistent kernel launches exactly one block an SM on purpose. A small problem that takes a few microseconds is bound by
launch cost. Several small kernels that run side by side on other streams fill the chip together.

## Fix
More and smaller blocks; split along another dimension (split-K, split along the sequence); batch several problems into one
launch; or run independent small kernels together.

## How the gain is found
Time falls in proportion to the SMs put to work, until a roof or one block an SM is reached.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.counters import Counters
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence

FILLED = 0.9  # of the SMs have a block: the rest is rounding
THIN = 0.2  # of the places that registers and shared memory leave for blocks: one small block an SM hides no latency

CLUES = (Clue((k.WAVES,), lambda e: e.value(k.WAVES) < 0.5, "fair, needed", "less than half a wave of blocks"),)


@rule(k.GRID_BLOCKS, per="kernel")
def grid_too_small(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    blocks, sms = c.get(k.GRID_BLOCKS), c.get(k.SM_COUNT)
    used = blocks / sms if sms > 0 else 1.0
    if c.dram >= 0.75:
        return None
    if used >= FILLED:
        return _thin(c, blocks) if c.get(k.WAVES, 9.0) < THIN else None
    ceiling = max(c.dram, c.math, 0.02)
    high = min(1 - used, 1 - ceiling)
    return Finding(
        headline=f"{blocks:.0f} blocks on {sms:.0f} SMs: {1 - min(used, 1):.0%} of the chip has no work",
        confidence=0.95 if used < 0.7 else 0.8,
        because=(
            c.reason(f"a grid of {blocks:.0f} blocks, {sms:.0f} multiprocessors", k.GRID_BLOCKS, k.SM_COUNT),
            *((c.reason(f"a mean SM had work {c.get(k.SM_ACTIVE):.0%} of the time", k.SM_ACTIVE),)
              if c.knows(k.SM_ACTIVE) else ()),
        ),
        gain=c.gain(0.6 * high, high, "time in proportion to the SMs at work, until a roof is met"),
        fixes=(
            Fix("more, smaller blocks, or split another dimension (split-K, split along the sequence)"),
            Fix("batch several problems into one launch, or run small kernels on several streams"),
        ),
        not_here=(c.reason(f"occupancy {c.get(k.ACHIEVED_OCCUPANCY):.0%}: empty SMs are the reason", k.ACHIEVED_OCCUPANCY),)
        if c.get(k.ACHIEVED_OCCUPANCY, 1.0) < 0.5
        else (),
        avoid="Do not tune the code inside the block first: most SMs never see it.",
        explains=("latency-bound-low-occupancy", "block-imbalance", "tail-wave"),
    )  # fmt: skip


def _thin(c: Counters, blocks: float) -> Finding | None:
    """Every SM may have a block, but so few and small ones that nothing hides their waits."""
    held, most = c.get(k.ACHIEVED_OCCUPANCY, 1.0), c.get(k.THEORETICAL_OCCUPANCY, 1.0)
    ceiling = max(c.dram, c.math, 0.02)
    if held > 2 * THIN * most or ceiling > 0.5:
        return None
    return Finding(
        headline=f"{blocks:.0f} blocks fill {c.get(k.WAVES):.0%} of a wave: the SMs hold too few warps to hide latency",
        confidence=0.8,
        because=(
            c.reason(f"a grid of {blocks:.0f} blocks is {c.get(k.WAVES):.2f} waves", k.GRID_BLOCKS, k.WAVES),
            c.reason(f"occupancy {held:.0%} where {most:.0%} would fit", k.ACHIEVED_OCCUPANCY, k.THEORETICAL_OCCUPANCY),
        ),
        gain=c.gain(0.3 * (1 - ceiling), 0.9 * (1 - ceiling), "warps in flight until a roof is met"),
        fixes=(
            Fix("more blocks: split another dimension (split-K, split along the sequence, flash-decoding)"),
            Fix("larger blocks, or several problems in one launch"),
        ),
        avoid="Do not tune registers or shared memory: they already leave room for far more blocks.",
        explains=("latency-bound-low-occupancy", "block-imbalance", "tail-wave"),
    )
