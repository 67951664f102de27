"""The micro-batch is too small to fill the device.

## What it means
A step is made of many tiny forward and backward passes. Each launches the whole model for little work, so kernels are
short, matrix products have few rows, and weights are read again for every pass.

## Why it costs
Launch time and weight traffic are paid per pass, not per sample. Fewer, larger passes do the same work with less of
both.

## What else looks so
A small model at its full batch is `launch-bound`: there are no passes to merge. Accumulation that memory demands is
not to blame for its own sake.

## Fix
Raise the micro-batch until memory is used and lower the accumulation count by the same factor: the result is the
same. Pack short sequences.

## How the gain is found
Merging passes removes the launching idle time in proportion; twice the micro-batch removes about half of it. The high
end removes all of it and the weight traffic of the extra passes.
"""

from __future__ import annotations

from stallwise.doctor.findings.finding import Finding, Fix
from stallwise.doctor.findings.rule import rule
from stallwise.doctor.findings.step_facts import StepFacts, ms, percent
from stallwise.evidence.capture import NVIDIA_SMI
from stallwise.evidence.catalog import step as s
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

PASSES = 2  # there must be something to merge
IDLE_SHARE = 0.15  # of the step idle between launches
ROOM = 0.5  # of memory in use at most: room to double the micro-batch


@rule(s.MICROBATCHES, s.LAUNCH_WAIT, s.STEP_TIME)
def small_microbatch(evidence: Evidence) -> Finding | None:
    """Looks for several passes a step that leave the device idle, with room for larger ones."""
    facts = StepFacts(evidence)
    passes = facts.number(s.MICROBATCHES)
    gap = facts.seconds(s.LAUNCH_WAIT)
    used = facts.memory_share
    if passes < PASSES or facts.share(gap) < IDLE_SHARE or used > ROOM:
        return None
    known = used == used
    merged = 1 - 1 / min(passes, 4.0)
    gain = facts.gain(
        merged * gap,
        gap + 0.3 * facts.seconds(s.COMPUTE_TIME),
        "idle time between launches, shared by fewer passes; at best the weights are read less often too",
    )
    return Finding(
        headline=f"{passes:.0f} tiny micro-batches a {facts.unit}: the GPU idles {percent(facts.share(gap))} of the time between short kernels.",
        confidence=0.85 if known else 0.7,
        category=Category.LAUNCH_GAP,
        gain=gain,
        because=(
            facts.because(f"{passes:.0f} backward passes a {facts.unit}", s.MICROBATCHES),
            facts.because(f"the median matrix kernel takes {ms(facts.seconds(s.MATRIX_MEDIAN))}", s.MATRIX_MEDIAN),
            facts.because(f"memory is {percent(used)} full" if known else "memory use was not recorded", s.MEMORY_PEAK),
        ),
        fixes=(
            Fix(
                f"micro-batch x{min(passes, 4):.0f}, accumulation / {min(passes, 4):.0f}",
                gain,
                cost="activation memory",
                risk="none for the result",
            ),
            Fix("pack short sequences into one row", gain, cost="an attention mask"),
        ),
        avoid="Do not start with kernels: larger passes change all of them.",
        next=() if known else (NVIDIA_SMI,),
        explains=("launch-bound",),
    )
