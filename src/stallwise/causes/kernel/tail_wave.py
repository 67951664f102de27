"""The last wave of blocks is nearly empty, and the whole GPU waits for it.

## What it means
Blocks run in waves of as many as fit at once. When the count is just over a whole number of waves, a few blocks run alone
at the end while the other SMs are idle.

## Why it costs
With one full wave and a handful of blocks more, the kernel takes up to twice the time of the full wave.

## What else looks so
Blocks of very different length also leave SMs idle at the end, at any grid size. With more than about ten waves the tail
is lost in the whole.

## Fix
Choose the grid so that waves come out whole: other tile sizes, a persistent kernel that loops over tiles, or stream-K style
splitting of the last tiles.

## How the gain is found
Between the idle time measured on the SMs and the waves lost by rounding up.
"""

from __future__ import annotations

from math import ceil, floor

from stallwise.doctor.findings.counters import Counters
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence

NOTICEABLE = 0.08  # of the time is lost by rounding up
IDLE = 0.04  # measured: a mean SM without work at least this long
ROUNDING = 0.005  # reports round waves to two digits


@rule(k.WAVES, per="kernel")
def tail_wave(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    waves = _waves(c)
    if waves < 1:
        return None
    loss = 1 - waves / ceil(waves)
    loss = max(loss, c.get(k.TAIL_SHARE)) if loss >= NOTICEABLE else loss
    idle = 1 - c.get(k.SM_ACTIVE, 1 - loss)
    busy_end = c.get(k.ACHIEVED_OCCUPANCY, 1.0) / max(c.get(k.THEORETICAL_OCCUPANCY, 1.0), 0.01)
    thin = 1 - busy_end  # resident warps under what fits: seen when blocks run alone at the end
    if loss < NOTICEABLE or (idle if c.knows(k.SM_ACTIVE) else thin) < IDLE:
        return None
    low = min(max(idle, 0.0), loss)
    confidence = 0.9 if c.knows(k.SM_ACTIVE) and idle >= 0.06 and loss >= 0.15 else 0.55
    if c.get(k.SM_IMBALANCE) > 2.5 * loss:
        confidence = 0.4  # blocks of unequal length explain the idle SMs better
    blocks = c.get(k.GRID_BLOCKS)
    return Finding(
        headline=f"{floor(waves)} full wave(s) and a tail: {low:.0%} to {loss:.0%} of the time few SMs work",
        confidence=confidence,
        because=(
            c.reason(f"{waves:.2f} waves of blocks ({blocks:.0f} blocks): the last one is "
                     f"{waves - floor(waves):.0%} full", k.WAVES, k.GRID_BLOCKS),
            c.reason(f"a mean SM is idle {max(idle, 0):.0%} of the time", k.SM_ACTIVE),
        ),
        gain=c.gain(low, loss, "measured idle time, up to the waves lost by rounding up"),
        fixes=(
            Fix("choose tiles so that blocks fill whole waves", cost="retune"),
            Fix("a persistent kernel that shares tiles evenly, or stream-K splitting", cost="a rewrite"),
        ),
        avoid="Do not look at the average throughput: the first waves are fine.",
        explains=("block-imbalance",),
    )  # fmt: skip


def _waves(c: Counters) -> float:
    """Waves from the launch where it tells, because reports round 1.005 to 1.00."""
    blocks, sms, fit = c.get(k.GRID_BLOCKS), c.get(k.SM_COUNT), c.get(k.BLOCKS_PER_SM)
    exact = blocks / (sms * fit) if blocks and sms and fit else 0.0
    waves = c.get(k.WAVES)
    return exact if exact and abs(exact - waves) < max(ROUNDING * 2, 0.01 * waves) else waves
