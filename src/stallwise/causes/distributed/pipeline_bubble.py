"""The pipeline idles as much as its schedule must: too few micro-batches for its depth.

## What it means
Filling and draining a pipeline of p stages leaves (p-1) of (m+p-1) slots empty with plain 1F1B. The measured idle time
is about that, so nothing is broken; the schedule is just short.

## Why it costs
The empty slots are paid on every rank in every step.

## What else looks so
Idle beyond the schedule's own comes from unequal stages, slow hand-offs or a straggler; then more micro-batches help
little.

## Fix
More micro-batches (smaller ones, or a larger global batch), interleaved stages, or a zero-bubble schedule; or fewer
stages.

## How the gain is found
The formula of the schedule with twice the micro-batches, and with two chunks a rank.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import above, over
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import RANK_TRACES, STEP_SHAPE
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.catalog import expected, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.ledger import Category

NOTICEABLE = 0.08  # of the step; pipelines are run with about so much
SAME = 1.3  # measured over ideal: beyond that something else idles too
EQUAL_STAGES = 1.1
CLUES = (
    over(stated.BUBBLE, expected.BUBBLE_SCHEDULE, 1.25, "against",
         "more idle than the schedule has", "the idle time is what the schedule must have"),
    above(expected.BUBBLE_SCHEDULE, NOTICEABLE, "required",
          "the schedule idles a good part of the step", "the schedule hardly idles"),
)  # fmt: skip


@rule()
def pipeline_bubble(evidence: Evidence) -> Finding | None:
    """Measured idle equals the schedule's own, and that is much."""
    idle, ideal = _measured(evidence)
    if idle is None or ideal is None or ideal.number <= 0:
        return None
    if (
        idle.number < NOTICEABLE
        or idle.number > SAME * ideal.number
        or evidence.value(q.STAGE_RATIO, 1.0) > EQUAL_STAGES
    ):
        return None
    stages = evidence.value(q.PIPELINE_STAGES, evidence.value(stated.PP))
    many = evidence.value(q.MICROBATCHES_SEEN, evidence.value(stated.MICROBATCHES))
    step = evidence.get(q.JOB_STEP)
    gain, worth = None, "about half of the idle share with twice the micro-batches"
    if stages == stages and many == many:
        doubled = (stages - 1) / (2 * many + stages - 1)
        worth = f"idle {ideal} -> {doubled:.0%} with {2 * many:.0f} micro-batches"
        if step:
            saved = max(ideal.number - doubled, 0.0) * step.number
            gain = Gain(0.7 * saved, saved, "the schedule's formula with twice the micro-batches")
    shape = f"{stages:.0f} stages, {many:.0f} micro-batches: " if stages == stages and many == many else ""
    return Finding(
        headline=f"The pipeline idles {idle} of the step, as its schedule must.",
        confidence=0.8,
        because=(Reason.of(f"{shape}the schedule idles {ideal}, measured {idle}", idle, ideal),),
        category=Category.BUBBLE,
        gain=gain,
        fixes=(
            Fix("More micro-batches a step", gain, worth=worth, cost="activation memory, or smaller micro-batches",
                risk="small micro-batches make small kernels"),
            Fix("Interleave stages (two chunks a rank), or a zero-bubble schedule", worth="halves or removes the bubble",
                cost="more hand-offs, framework support"),
            Fix("Fewer stages, if memory allows", cost="a new layout"),
        ),
        avoid="Looking for a slow stage: the stages are equal.",
        next=(RANK_TRACES, STEP_SHAPE),
        explains=("exposed-communication", "straggler-rank"),  # a receive that waits moves no bytes; who drains last is not slow
    )  # fmt: skip


def _measured(evidence: Evidence) -> tuple[Fact | None, Fact | None]:
    idle, ideal = evidence.get(q.PIPELINE_IDLE), evidence.get(q.BUBBLE_IDEAL)
    if idle and ideal:
        return idle, ideal
    stated_bubble = evidence.get(stated.BUBBLE)
    return stated_bubble, evidence.get(expected.BUBBLE_SCHEDULE) or evidence.get(expected.BUBBLE_1F1B)
