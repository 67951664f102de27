"""Activations are recomputed in the backward pass although memory would hold them.

## What it means
Activation checkpointing drops the results of the forward pass and computes them again for the gradients. It trades
about a third more compute for memory.

## Why it costs
The forward pass runs twice. With memory to spare the trade buys nothing.

## What else looks so
Recompute that is needed to fit is the right choice: only the peak memory tells. Fused attention recomputes scores on
chip by design.

## Fix
Turn it off, or only for the cheap layers (selective recompute: attention only), or raise the batch until memory is
used.

## How the gain is found
The device time of forward operators launched by the autograd engine; the high end adds the small operators between
them in the proportion of the forward pass.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import says_one_of, yes
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, ms, percent
from stallwise.evidence.capture import NVIDIA_SMI
from stallwise.evidence.catalog import gains, stated
from stallwise.evidence.catalog import step as s
from stallwise.evidence.catalog.hardware import GPU_MEMORY_USED
from stallwise.evidence.evidence import Evidence

ROOM = 0.6  # of memory in use at most: dropping recompute may add as much again as the activations hold now
TIGHT = 0.85  # of memory in use: recompute is doing its work

BETWEEN = 1.1  # the gaps between the repeated kernels go with them


@rule(s.RECOMPUTE_TIME, s.STEP_TIME)
def recompute_unneeded(evidence: Evidence) -> Finding | None:
    """Looks for repeated forward work and for room in memory."""
    facts = StepFacts(evidence)
    # Where the host sets the pace, its time for the repeated work is what is lost, not the device's.
    repeated, used = max(facts.seconds(s.RECOMPUTE_TIME), facts.seconds(gains.NO_RECOMPUTE)), facts.memory_share
    if facts.share(repeated) < NOTICEABLE or used > TIGHT:
        return None
    low, high = facts.range_of(s.RECOMPUTE_TIME)
    known = used == used
    gain = facts.less_work(
        gains.NO_RECOMPUTE, low, BETWEEN * high, "device time of forward work inside the backward pass"
    )
    ample = known and used <= ROOM
    because = [
        facts.because(f"forward operators run again under the autograd engine for {ms(repeated)}", s.RECOMPUTE_TIME)
    ]
    if known:
        because.append(facts.because(f"memory peaks at {percent(used)} of the device", s.MEMORY_PEAK, GPU_MEMORY_USED))
    return Finding(
        headline=f"Activations are recomputed for {ms(repeated)} of every {ms(facts.step_s)}"
        + (f" though memory is only {percent(used)} full." if known else "."),
        confidence=0.92 if ample else 0.65 if known else 0.55,
        category=facts.category_of(gains.NO_RECOMPUTE, facts.seconds(s.RECOMPUTE_TIME)),
        gain=gain,
        because=tuple(because),
        fixes=(
            Fix(
                "switch activation checkpointing off",
                gain,
                cost="memory",
                risk="out of memory if the peak is elsewhere: try one step",
            ),
            Fix(
                "recompute only attention or every other block",
                facts.gain(0.4 * low, 0.7 * high, "a part of the blocks"),
                cost="less memory",
            ),
            Fix("or keep it and raise the batch until memory is used", cost="convergence"),
        ),
        avoid="Do not switch it off blindly on a run that needs it: look at the peak first.",
        next=() if known else (NVIDIA_SMI,),
    )


# Recomputation that was switched on, while only suspected.
CLUES = (
    says_one_of(
        stated.CHANGED,
        ("checkpointing", "recompute", "rematerial"),
        "decisive",
        "recomputation was switched on",
        "recomputation did not change",
    ),
    yes(
        stated.AFTER_MEMORY_SAVING,
        "hint",
        "it began after a change that saves memory",
        "nothing was changed to save memory",
    ),
)
