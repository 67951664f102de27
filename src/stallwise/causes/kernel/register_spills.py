"""Threads need more registers than they get and keep the rest in memory.

## What it means
The compiler ran out of registers (a limit of 255, a `maxrregcount`, launch bounds, or an array indexed at run time) and put
values into local memory, which is ordinary memory behind L1 and L2.

## Why it costs
Every spilled value is a store and later a load. Once the spills of all resident threads outgrow the caches they go to DRAM
and compete with the real traffic.

## What else looks so
Many registers without local traffic are no spill. A handful of spilled values outside the loop costs nothing.

## Fix
Smaller tiles per thread, more warps over the same tile, looser launch bounds; constant indices so that arrays stay in
registers; split the kernel; recompute instead of keeping.

## How the gain is found
The part of the memory traffic that is local, over the time the memory system is the limit.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.counters import Counters
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence

NOTICEABLE = 0.02  # of all instructions are spill loads and stores
PER_WARP = 16.0  # requests a warp where instructions are not known: more than a prologue's worth
TRAFFIC = 0.10  # of the L1 sectors

CLUES = (
    Clue((k.SPILL_REQUESTS,), lambda e: e.value(k.SPILL_REQUESTS) > 0, "strong, needed", "there are spill requests"),
    Clue(
        (k.SPILL_BYTES_PER_THREAD,),
        lambda e: e.value(k.SPILL_BYTES_PER_THREAD) > 32,
        "strong, needed",
        "the compiler spills",
    ),
)


@rule(per="kernel")
def register_spills(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    requests, spilled = c.get(k.SPILL_REQUESTS), c.get(k.SPILL_BYTES_PER_THREAD)
    # The details page shows local accesses only through how little of each sector they use.
    local = c.knows(k.LOCAL_SECTOR_BYTES) and (
        c.get(k.STALL_LONG_SCOREBOARD) + c.get(k.STALL_LG_THROTTLE) >= 0.5 or c.memory >= 0.4
    )
    if not requests and spilled < 64 and not local:
        return None
    warps = c.get(k.GRID_BLOCKS) * max(c.get(k.BLOCK_THREADS) / 32, 1.0)
    weight = requests / c.get(k.INSTRUCTIONS) if c.get(k.INSTRUCTIONS) else 0.0
    traffic = c.get(k.LOCAL_TRAFFIC)
    heavy = weight >= NOTICEABLE or traffic >= TRAFFIC or (local and not requests)
    if not heavy and not c.get(k.INSTRUCTIONS) and not c.knows(k.LOCAL_TRAFFIC):
        heavy = spilled >= 64 or (warps > 0 and requests / warps >= PER_WARP)
    if not heavy:
        return None
    part = traffic or min(0.9, max(2.5 * weight, 0.3))
    pressed = max(c.memory, c.get(k.STALL_LONG_SCOREBOARD) + c.get(k.STALL_LG_THROTTLE), 0.3)
    return Finding(
        headline=f"register spills: {_size(c, requests, spilled)}",
        confidence=0.94 if requests or spilled else 0.8,
        because=_because(c, requests, spilled, weight, traffic),
        gain=c.gain(0.5 * part * pressed, part * pressed, "local traffic over the time memory is the limit"),
        fixes=(
            Fix("smaller tiles per thread, or more warps over the same tile", cost="retune"),
            Fix("loosen launch bounds or maxrregcount; index local arrays with constants"),
            Fix("split the kernel or recompute values instead of keeping them"),
        ),
        not_here=(c.reason(f"DRAM {c.dram:.0%}: part of it carries spilled registers", k.DRAM_SHARE),)
        if c.dram >= 0.4
        else (),
        avoid="Do not raise occupancy by capping registers further: that spills more.",
        explains=("latency-bound-low-occupancy", "dram-bandwidth-bound", "uncoalesced-access"),
    )


def _size(c: Counters, requests: float, spilled: float) -> str:
    if spilled:
        return f"{spilled:.0f} bytes a thread live in memory"
    if c.get(k.LOCAL_TRAFFIC):
        return f"{c.get(k.LOCAL_TRAFFIC):.0%} of the L1 traffic is local memory"
    return f"{requests:,.0f} local-memory requests" if requests else "local memory is read and written"


def _because(c: Counters, requests: float, spilled: float, weight: float, traffic: float) -> tuple[Reason, ...]:
    found = []
    if requests:
        text = f"{requests:,.0f} spill requests" + (f", {weight:.0%} of all instructions" if weight else "")
        found.append(c.reason(text, k.SPILL_REQUESTS, k.INSTRUCTIONS))
    if spilled:
        found.append(c.reason(f"the compiler spills {spilled:.0f} bytes a thread", k.SPILL_BYTES_PER_THREAD))
    if traffic:
        found.append(c.reason(f"local memory makes {traffic:.0%} of the L1 sectors", k.LOCAL_TRAFFIC))
    if not requests and c.knows(k.LOCAL_SECTOR_BYTES):
        used = c.get(k.LOCAL_SECTOR_BYTES)
        found.append(c.reason(f"{used:.0f} of 32 bytes of each local-memory sector are used", k.LOCAL_SECTOR_BYTES))
    if c.get(k.REGISTERS) >= 128:
        found.append(c.reason(f"{c.get(k.REGISTERS):.0f} registers a thread", k.REGISTERS))
    if c.stall:
        found.append(c.reason(c.stall, k.TOP_STALL))
    return tuple(found)
