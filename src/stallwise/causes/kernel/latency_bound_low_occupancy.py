"""Too few warps are resident to hide the latency of what they wait for.

## What it means
Both roofs are far away. Each scheduler holds one or two warps, and when these wait for memory nothing else can issue.

## Why it costs
Latency of several hundred cycles is hidden only by other warps or by independent work inside a warp. With neither, the SM
idles most of the time.

## What else looks so
A tensor kernel at modest occupancy with a busy pipe is healthy. A grid with fewer blocks than SMs lowers occupancy too, but
there the grid is the cause. Full occupancy with long waits is a matter of access pattern or of latency per item.

## Fix
Spend less of what limits residency (shared memory, registers, block size), or give each warp more independent loads in
flight: unroll, prefetch, vectorise.

## How the gain is found
More warps lift throughput in proportion until a roof at 60 to 80% is met; the limiter says how many more could fit.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.counters import Counters
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence

LOW = 0.35  # of the warps an SM can hold; most kernels hide latency well from about 0.4 on
FAR = 0.60  # of a roof: under it neither bandwidth nor a pipe is the limit
ISSUE_FAR = 0.50

CLUES = (
    Clue(
        (k.ACHIEVED_OCCUPANCY,), lambda e: e.value(k.ACHIEVED_OCCUPANCY) < LOW, "fair, needed", "few warps are resident"
    ),
)


@rule(k.ACHIEVED_OCCUPANCY, per="kernel")
def latency_bound_low_occupancy(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    occupancy = c.get(k.ACHIEVED_OCCUPANCY)
    ceiling = max(c.memory, c.get(k.TENSOR_SHARE), c.get(k.FMA_SHARE), c.get(k.TOP_PIPE_SHARE), c.get(k.SM_SHARE))
    if occupancy >= LOW or ceiling >= FAR + 0.05 or c.get(k.ISSUE_SHARE) >= ISSUE_FAR:
        return None
    if c.get(k.CONTRACTION) >= 0.7:
        return None  # a tensor kernel, or one that should be: its pipe is the tenfold factor, not its occupancy
    if c.get(k.GRID_BLOCKS, 1e9) < c.get(k.SM_COUNT, 1.0):
        return None  # SMs without any block: the grid is the cause
    theoretical = c.get(k.THEORETICAL_OCCUPANCY, occupancy)
    limited = theoretical < 0.5
    growth = min(0.75 / max(ceiling, 0.02), 1.0 / max(occupancy, 0.01))
    confidence = 0.9 if limited and (ceiling < 0.5 or occupancy < 0.15) else 0.65
    if c.get(k.SPILL_REQUESTS) > 0:
        confidence = min(confidence, 0.7)
    return Finding(
        headline=f"latency is not hidden: {occupancy:.0%} of the warps resident, no roof within reach",
        confidence=confidence,
        because=_because(c, occupancy, ceiling),
        gain=c.gain(1 - 1 / max(min(growth / 2, 4.0), 1.0), 1 - 1 / max(growth, 1.0), "more warps until a roof is met"),
        fixes=_fixes(c),
        not_here=(c.reason(f"{c.get(k.EXCESS_SECTORS):.0%} excess sectors: bandwidth is not the limit", k.EXCESS_SECTORS),)
        if c.get(k.EXCESS_SECTORS) >= 0.3
        else (),
        avoid="Do not optimise bandwidth: it is mostly idle.",
    )  # fmt: skip


def _because(c: Counters, occupancy: float, ceiling: float) -> tuple[Reason, ...]:
    found = [c.reason(f"achieved occupancy {occupancy:.0%}; the nearest roof is at {ceiling:.0%}", k.ACHIEVED_OCCUPANCY,
                      k.DRAM_SHARE)]  # fmt: skip
    if limiter := c.word(k.OCCUPANCY_LIMITER):
        blocks = c.get(k.BLOCKS_PER_SM)
        found.append(c.reason(f"{limiter} allow {blocks:.0f} block(s) an SM", k.OCCUPANCY_LIMITER))
    if c.stall:
        found.append(c.reason(c.stall, k.TOP_STALL))
    return tuple(found)


def _fixes(c: Counters) -> tuple[Fix, ...]:
    limiter = c.word(k.OCCUPANCY_LIMITER)
    shared, registers = c.get(k.SHARED_BYTES), c.get(k.REGISTERS)
    first = {
        "shared memory": Fix(f"halve the {shared / 1024:.0f} KiB of shared memory a block to fit twice the blocks"),
        "registers": Fix(f"bring {registers:.0f} registers a thread down, unless that spills"),
        "block slots": Fix("larger blocks: the SM runs out of block slots first"),
    }.get(limiter, Fix("more warps: larger blocks or more blocks"))
    return (first, Fix("more independent loads in flight a warp: unroll, prefetch, vector loads"))
