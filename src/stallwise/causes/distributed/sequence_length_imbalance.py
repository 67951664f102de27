"""Microbatches differ in length, so ranks and stages wait for whoever got the long ones.

## What it means
Time of attention grows with the square of a sequence's length. Where documents are packed or padded to the same number of
tokens but not to the same work, some microbatches take much longer than others: forward and backward alike, on all stages,
and at random across ranks and steps.

## Why it costs
Every gradient exchange waits for the replica with the longest sum, and in a pipeline every stage waits for the longest
microbatch ahead of it. No rank is at fault, so replacing nodes does not help.

## What else looks so
A slow rank is late in every step, whatever it computes. A long stage is long for every microbatch. Pauses hit the host: then
forward and backward of one microbatch do not vary together.

## Fix
Balance by work instead of by count: sort sequences into buckets of like length, pack by the sum of squares, deal microbatches
of one step so that all replicas get the same, or cut long sequences across ranks (context parallelism).

## How the gain is found
The job replayed with every microbatch of a step as long as their mean, total work unchanged.
"""

from __future__ import annotations

from stallwise.causes.distributed._replayed_job import of_the_job
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import RANK_TRACES
from stallwise.evidence.catalog import distributed as d
from stallwise.evidence.catalog import workers as q
from stallwise.evidence.evidence import Evidence

NOTICEABLE = 0.02  # of a step; run-to-run noise of healthy jobs is 1 to 2%
REACHED = 0.6  # of the gain: dealing whole sequences evens out so much where few microbatches make a step


@rule(q.SEQUENCE_COST, q.SEQUENCE_SPREAD)
def sequence_length_imbalance(evidence: Evidence) -> Finding | None:
    """Microbatches of one step differ, and the job waits for the long ones."""
    cost, spread, step = evidence.get(q.SEQUENCE_COST), evidence.get(q.SEQUENCE_SPREAD), evidence.get(d.JOB_STEP)
    if not (cost and spread and step) or cost.number < NOTICEABLE * step.number:
        return None
    agrees, longest = evidence.get(q.SEQUENCE_TOGETHER), evidence.get(q.SEQUENCE_LONGEST)
    gain = Gain(REACHED * cost.number, cost.number, "replayed with every microbatch at the mean of its step")
    because = [
        Reason.of(f"microbatch times vary by {spread}; with all at their mean the step saves {cost}", spread, cost)
    ]
    if agrees:
        because.append(
            Reason.of(f"forward and backward of a microbatch vary together (correlation {agrees.number:.2f})", agrees)
        )
    if longest:
        because.append(Reason.of(f"one in a hundred takes {longest} the mean", longest))
    return Finding(
        headline=f"Microbatches differ in length: the job waits {cost} of every {step} for the long ones.",
        confidence=0.95,
        because=(*because, *of_the_job(evidence)),
        gain=gain,
        fixes=(
            Fix("Deal the sequences of a step so that every replica and microbatch gets the same work (sum of squared lengths)", gain,
                cost="a sampler that knows lengths", risk="order of the data changes within a step"),
            Fix("Pack or bucket sequences of like length", gain, cost="a pass over the dataset", risk="less random batches"),
            Fix("Split the longest sequences across ranks (context parallelism)", cost="framework support"),
        ),
        not_here=(Reason("single ranks: the long microbatches fall on all of them in turn"),),
        avoid="Replacing nodes: no rank is slow for the same work.",
        next=(RANK_TRACES,),
        explains=("exposed-communication", "pipeline-bubble"),
        summary="Forward and backward vary together and at random across ranks: the input does, not the machines.",
    )  # fmt: skip
