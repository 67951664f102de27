"""Many threads update the same few addresses, and the memory system takes them one by one.

## What it means
Atomic updates to one address are done in order at one L2 slice (or in one SM for shared memory). When most threads hit a few
addresses, they queue there while the rest of the chip is idle.

## Why it costs
The rate is that of the busiest address, a few updates a clock, whatever the number of threads.

## What else looks so
Atomics spread over many addresses run near L2 speed. Uncoalesced stores also wait long, but without atomics.

## Fix
Reduce within the warp and the block first (shuffles, shared memory) and do one atomic a block; privatise bins and merge; sort
by key and reduce segments.

## How the gain is found
Combining within a block removes nearly all updates: most of the time spent waiting for them comes back.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.counters import Counters
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence

NOTICEABLE = 0.005  # of all instructions are atomics; each costs as much as hundreds of others when they collide
QUEUED_CYCLES = 2000.0  # waited an instruction; an access to idle DRAM takes 500 to 1000
HOT_SLICE = 0.5  # the mean L2 slice does at most half of the busiest one's work

CLUES = (
    Clue((k.ATOMIC_REQUESTS,), lambda e: e.value(k.ATOMIC_REQUESTS) > 0, "fair, needed", "the kernel does atomics"),
)


@rule(k.TIME, per="kernel")
def atomic_contention(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    atomics = c.get(k.ATOMIC_REQUESTS) + c.get(k.SHARED_ATOMICS)
    weight = atomics / max(c.get(k.INSTRUCTIONS, 1e18), 1.0)
    hot = c.get(k.L2_IMBALANCE) >= HOT_SLICE
    idle = max(c.dram, c.get(k.FMA_SHARE), c.get(k.TENSOR_SHARE), c.get(k.ISSUE_SHARE)) < 0.6
    waits = c.is_stall("long_scoreboard", "lg_throttle", "drain", "membar", "short_scoreboard", "mio_throttle")
    # An idle memory answers within a thousand cycles: longer waits are a queue at few addresses.
    queued = c.get(k.WARP_LATENCY) * c.get(k.TOP_STALL_SHARE)
    serial = waits and queued >= QUEUED_CYCLES and c.memory < 0.15 and not c.knows(k.LOCAL_SECTOR_BYTES)
    if not idle:
        return None
    if weight >= NOTICEABLE and (hot or waits or not c.word(k.TOP_STALL)):
        confidence = 0.92 if hot else 0.8
    elif hot and waits and not c.knows(k.ATOMIC_REQUESTS) and c.get(k.L2_SHARE) < 0.7 and c.dram < 0.3:
        confidence = 0.66  # counters of atomics were not collected; one slice takes most of the traffic
    elif serial and not c.knows(k.ATOMIC_REQUESTS):
        confidence = 0.7
    else:
        return None
    wait = max(c.get(k.TOP_STALL_SHARE), 0.6)
    return Finding(
        headline="atomic updates queue up at few addresses",
        confidence=confidence,
        because=_because(c, atomics, weight, hot),
        gain=c.gain(0.5 * wait, 0.95 * wait, "the time warps wait for the updates, less one update a block"),
        fixes=(
            Fix("reduce within the warp and block first, then one atomic a block", cost="a few lines"),
            Fix("private copies of the hot bins, merged at the end", cost="memory for the copies"),
            Fix("sort by key and reduce runs", cost="a sort"),
        ),
        avoid="Do not add threads: they join the queue.",
        explains=("uncoalesced-access", "block-imbalance"),
    )


def _because(c: Counters, atomics: float, weight: float, hot: bool) -> tuple[Reason, ...]:
    found = []
    if atomics:
        found.append(c.reason(f"{atomics:,.0f} atomic requests, {weight:.1%} of all instructions", k.ATOMIC_REQUESTS,
                              k.SHARED_ATOMICS))  # fmt: skip
    if hot:
        found.append(c.reason(f"the mean L2 slice does {1 - c.get(k.L2_IMBALANCE):.0%} of the busiest one's work",
                              k.L2_IMBALANCE))  # fmt: skip
    if c.stall:
        found.append(c.reason(f"{c.stall}, {c.get(k.WARP_LATENCY):,.0f} cycles an instruction", k.TOP_STALL))
    found.append(c.reason(f"DRAM {c.dram:.0%}, issue slots {c.get(k.ISSUE_SHARE):.0%}: the chip is mostly idle",
                          k.DRAM_SHARE, k.ISSUE_SHARE))  # fmt: skip
    return tuple(found)
