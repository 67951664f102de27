"""Neighbouring threads touch far-apart addresses, so most of each fetched sector is thrown away.

## What it means
DRAM and L2 move 32-byte sectors. When the lanes of a warp read with a stride or at random, each sector carries only a few
useful bytes, and the kernel moves several times the bytes it needs.

## Why it costs
The memory system is busy with bytes nobody uses. A stride of eight floats makes a copy eight times as costly on the read
side.

## What else looks so
Strided access whose lines stay in L1 or L2 wastes little. A gather that is inherent (embedding rows of at least 128 bytes)
already uses whole sectors. Spilled registers also show as poor local access, but that is another repair.

## Fix
Let consecutive threads touch consecutive addresses: swap loop order or index roles, change the layout (structure of
arrays), go through shared memory for a transpose, or load wider types.

## How the gain is found
The share of excess sectors, applied to the part of the time in which the memory system is the limit.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.counters import Counters
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence

WASTE = 0.30  # of the sectors; a few misaligned rows reach 0.2 without costing time
LIMITING = 0.50  # of the busiest memory unit: under it bandwidth is not what holds the kernel

CLUES = (
    Clue(
        (k.EXCESS_SECTORS,), lambda e: e.value(k.EXCESS_SECTORS) >= WASTE, "strong, needed", "sectors carry little use"
    ),
)


@rule(k.TIME, per="kernel")
def uncoalesced_access(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    excess = c.get(k.EXCESS_SECTORS)
    if not c.knows(k.EXCESS_SECTORS) and c.knows(k.SECTOR_BYTES_USED):
        excess = max(0.0, 1 - c.get(k.SECTOR_BYTES_USED) / 32)
    if excess < WASTE or c.math >= 0.8:
        return None
    pressed = max(c.get(k.DRAM_SHARE), c.get(k.L2_SHARE), c.get(k.L1_SHARE), c.get(k.LSU_SHARE))
    waits = c.is_stall("long_scoreboard", "lg_throttle", "drain") and c.get(k.TOP_STALL_SHARE) >= 0.3
    crowded = c.get(k.ACHIEVED_OCCUPANCY, 0.5) >= 0.25
    if pressed >= LIMITING and (crowded or pressed >= 0.75 or c.dram >= 0.6):
        confidence, part = 0.93, min(1.0, pressed + 0.1)
    elif waits and crowded:
        confidence, part = 0.78, max(c.get(k.TOP_STALL_SHARE) * 0.7, pressed)
    else:
        # Warps are too few to press the memory system: the waste is real but latency decides the time.
        confidence, part = 0.4, pressed
    local = c.get(k.LOCAL_TRAFFIC)
    if local >= 0.5 or (c.get(k.SPILL_REQUESTS) and excess < 0.5):
        confidence = min(confidence, 0.45)  # most of the traffic is spilled registers
    return Finding(
        headline=f"scattered access: {excess:.0%} of the global-memory sectors are waste",
        confidence=confidence,
        because=_because(c, excess, pressed),
        gain=c.gain(0.6 * excess * part, excess * part, "the excess sectors over the time memory is the limit"),
        fixes=(
            Fix("let consecutive threads read consecutive addresses (swap indices or change the layout)"),
            Fix("transpose through a shared-memory tile", cost="a tile of 32 x 33 words a warp"),
        ),
        not_here=(c.reason(f"DRAM {c.dram:.0%}: filled with bytes nobody uses", k.DRAM_SHARE),)
        if c.dram >= 0.7
        else (),
        avoid="Do not add occupancy or prefetching: more requests only queue behind the wasted ones.",
        explains=("dram-bandwidth-bound",),
    )


def _because(c: Counters, excess: float, pressed: float) -> tuple[Reason, ...]:
    used = c.get(k.SECTOR_BYTES_USED)
    text = f"{excess:.0%} of the sectors exceed what coalesced access needs"
    if used:
        text += f"; {used:.0f} of 32 bytes of a sector are used"
    found = [c.reason(text, k.EXCESS_SECTORS, k.SECTOR_BYTES_USED)]
    found.append(c.reason(f"the busiest memory unit is at {pressed:.0%}", k.DRAM_SHARE, k.L2_SHARE, k.L1_SHARE))
    if c.stall:
        found.append(c.reason(c.stall, k.TOP_STALL))
    return tuple(found)
