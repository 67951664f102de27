"""The kernel moves bytes as fast as DRAM allows: only fewer bytes make it faster.

## What it means
DRAM runs near its peak and the arithmetic is light for the bytes moved. The kernel is where the roofline says it should be.

## Why it costs
Nothing is wasted inside the kernel; the cost is the traffic itself, often intermediate results that are written only to
be read again by the next kernel.

## What else looks so
Uncoalesced access also fills DRAM, with bytes nobody uses; spills fill it with registers. Both are repairable. Warps that
wait for memory while DRAM is mostly idle are bound by latency, not by bandwidth.

## Fix
Fuse it with its neighbours so that intermediates stay on chip; use 16-bit or 8-bit storage; avoid reading what is not
needed. Tuning the launch wins nothing.

## How the gain is found
The distance from the measured share of DRAM to the 93% that the best streams reach; fusion is worth the bytes it saves.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.counters import Counters
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import StepFacts, ms, percent
from stallwise.evidence.capture import NCU
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

AT_BANDWIDTH = 0.70  # of DRAM's peak; large copies reach 0.80 to 0.93, reads mixed with writes less
BEST = 0.93
REPAIRABLE = 0.3  # of the traffic: above, the bytes are waste and another rule answers

CLUES = (
    Clue((k.DRAM_SHARE,), lambda e: e.value(k.DRAM_SHARE) >= AT_BANDWIDTH, "strong, needed", "DRAM runs near its peak"),
)


@rule(k.DRAM_SHARE, per="kernel")
def dram_bandwidth_bound(evidence: Evidence) -> Finding | None:
    """Judges one kernel."""
    c = Counters(evidence)
    if c.dram < AT_BANDWIDTH or c.math > c.dram:
        return None
    if max(c.get(k.EXCESS_SECTORS), c.get(k.LOCAL_TRAFFIC)) >= REPAIRABLE:
        return None
    rate = c.get(k.DRAM_RATE)
    return Finding(
        headline=f"at the memory roof: DRAM {c.dram:.0%} of peak" + (f", {rate / 1e12:.2f} TB/s" if rate else ""),
        confidence=0.92 if c.dram >= 0.8 else 0.75,
        because=(c.reason(f"DRAM {c.dram:.0%}, busiest math pipe {c.math:.0%}", k.DRAM_SHARE, k.TOP_PIPE_SHARE),),
        gain=c.gain(0.0, max(0.0, 1 - c.dram / BEST), "up to what the best streams reach; more only by moving less"),
        fixes=(
            Fix("fuse with the kernels before and after", worth="the bytes of each intermediate over the bandwidth"),
            Fix("store in fewer bits", worth="in proportion to the bytes", risk="accuracy"),
        ),
        not_here=_not_here(c),
        avoid="Do not tune occupancy or block sizes: the bytes are the time.",
        optional=True,
    )


def _not_here(c: Counters) -> tuple[Reason, ...]:
    found = []
    if c.stall:
        found.append(c.reason(f"{c.stall}: what a full DRAM looks like from a warp", k.TOP_STALL))
    if c.get(k.SM_SHARE, 1.0) < 0.5:
        found.append(c.reason(f"compute at {c.get(k.SM_SHARE):.0%}: there is little to compute", k.SM_SHARE))
    return tuple(found)


# The same cause over a whole run, as a trace shows it: most of the device's time goes into kernels that only
# move data.
MOST = 0.6  # of the busy time: below, products still decide
BUSY = 0.8  # of the step: an idle device is not bound by its memory


@rule(s.MEMORY_BOUND_TIME, s.BUSY_TIME, s.STEP_TIME)
def in_trace(evidence: Evidence) -> Finding | None:
    """Looks for a step made of norms, activations, copies, optimizers and other streams."""
    facts = StepFacts(evidence)
    moving, busy = facts.seconds(s.MEMORY_BOUND_TIME), facts.seconds(s.BUSY_TIME)
    if facts.share(busy) < BUSY or moving < MOST * busy:
        return None
    gain = facts.device_gain(0.0, 0.3 * moving, "fewer bits or fewer passes; nothing at the roof itself")
    return Finding(
        headline=f"The {facts.unit} is limited by memory: {percent(moving / busy)} of the busy time only moves data.",
        confidence=0.6,
        category=Category.COMPUTE,
        gain=gain,
        because=(
            facts.because(f"norms, pointwise kernels, copies and the optimizer take {ms(moving)}", s.MEMORY_BOUND_TIME),
        ),
        fixes=(
            Fix("fuse chains (torch.compile)", gain, cost="compile time"),
            Fix("16-bit activations, channels_last for convolutions", gain, risk="compare the loss"),
        ),
        avoid="Do not look for faster matrix kernels: they are the smaller part.",
        next=(NCU,),
        optional=True,
    )
