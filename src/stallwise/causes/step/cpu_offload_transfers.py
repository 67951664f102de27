"""States or activations shuttle between host and device each step.

## What it means
Optimizer states, parameters or activations live in host memory and cross the bus out and back in every step, as
offloading does by design.

## Why it costs
A bus moves 25 to 60 GB/s where device memory moves thousands. What cannot hide behind compute is lost, and host-side
optimizer arithmetic adds to it.

## What else looks so
A checkpoint copies out in single steps and does not come back. Large inputs only travel in (`h2d-copy-exposed`).

## Fix
Offload less: keep on the device what fits now; shard states over ranks instead; recompute activations instead of
moving them. Where it must stay, pin the memory, use larger buckets and overlap transfers with compute of the next
layer.

## How the gain is found
The time in which only such copies ran plus the idle time inside the copy calls; the low end is half of it, since some
state may have to stay outside.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import says_one_of, yes
from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import NOTICEABLE, StepFacts, bytes_text, ms, percent
from stallwise.evidence.capture import NVIDIA_SMI
from stallwise.evidence.catalog import stated
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

BULK_BYTES = 16e6  # each way a step: inputs and results are smaller, states are not
BALANCE = 0.25  # the smaller direction over the larger: what goes out comes back
EVERY_STEP = 0.6  # of the steps


@rule(s.COPY_STALL, s.STEP_TIME)
def cpu_offload_transfers(evidence: Evidence) -> Finding | None:
    """Looks for bulk copies both ways in most steps."""
    facts = StepFacts(evidence)
    sent, returned = facts.number(s.TO_DEVICE_BYTES), facts.number(s.TO_HOST_BYTES)
    stall = facts.seconds(s.COPY_STALL)
    both_ways = min(sent, returned) >= max(BULK_BYTES, BALANCE * max(sent, returned))
    if not both_ways or facts.number(s.TO_HOST_STEPS) < EVERY_STEP or facts.share(stall) < NOTICEABLE:
        return None
    gain = facts.gain(0.5 * stall, stall, "exposed copies and idle copy calls; half may have to stay outside")
    room = facts.memory_share
    return Finding(
        headline=f"Data shuttles over the bus: {bytes_text(sent)} in and {bytes_text(returned)} out a {facts.unit}, {ms(stall)} of it exposed.",
        confidence=0.9,
        category=Category.COPY,
        gain=gain,
        because=(
            facts.because(
                f"copies both ways in {percent(facts.number(s.TO_HOST_STEPS))} of the steps", s.TO_HOST_STEPS
            ),
            facts.because(f"nothing else runs for {ms(facts.seconds(s.EXPOSED_COPY))}", s.EXPOSED_COPY),
        ),
        fixes=(
            Fix(
                "keep on the device what fits" + (f" (memory is {percent(room)} full)" if room == room else ""),
                gain,
                risk="out of memory if the peak is higher than it looks",
            ),
            Fix("shard the states over ranks instead of moving them to the host", gain, cost="communication"),
            Fix("pinned memory, larger buckets, and transfers one layer ahead", gain),
        ),
        avoid="Do not tune kernels first: they wait for the bus.",
        next=() if room == room else (NVIDIA_SMI,),
        explains=("h2d-copy-exposed",),
    )


# States or activations moved to the host, while only suspected.
CLUES = (
    says_one_of(stated.CHANGED, ("offload",), "decisive", "offloading was switched on", "offloading did not change"),
    yes(
        stated.AFTER_MEMORY_SAVING,
        "hint",
        "it began after a change that saves memory",
        "nothing was changed to save memory",
    ),
)
