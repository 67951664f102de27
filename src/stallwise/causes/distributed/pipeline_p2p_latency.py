"""Handing activations from stage to stage costs a noticeable part of the step.

## What it means
Sends and receives between pipeline stages take long compared with the compute of a micro-batch, and nothing hides them.

## Why it costs
Every micro-batch pays two hand-offs on each border (and as many again for each extra chunk with interleaving).

## What else looks so
A receive that waits for a slow neighbour looks like a long transfer; the quickest of equal hand-offs shows what the
bytes alone cost.

## Fix
Overlap hand-offs with compute, send in bf16 with sequence parallelism (smaller slices), fewer chunks a rank, stages
inside a node, larger micro-batches.

## How the gain is found
The bytes' own time a step; all of it if overlapped, half for fewer chunks.
"""

from __future__ import annotations

from stallwise.causes.distributed._replayed_job import of_the_job
from stallwise.doctor.findings.clue import above
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCCL_TESTS, RANK_TRACES
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.catalog import expected, stated
from stallwise.evidence.catalog import workers as w
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

NOTICEABLE = 0.05  # of the step
SLOW_LINK = 0.02  # of the step, by replay
LONG = 0.15  # of a micro-batch's compute, when told
CLUES = (
    above(stated.P2P_SHARE, LONG, "strong", "hand-offs take a large part of a micro-batch", "hand-offs are short"),
)


@rule()
def pipeline_p2p_latency(evidence: Evidence) -> Finding | None:
    """The bytes' own time of the hand-offs is a noticeable part of the step, or some links are slower than the others."""
    if (slow := _slow_link(evidence)) is not None:
        return slow
    time, step, count = evidence.get(q.P2P_TIME), evidence.get(q.JOB_STEP), evidence.get(q.P2P_COUNT)
    if not (time and step and count) or step.number <= 0:
        return _stated_share(evidence)
    if time.number < NOTICEABLE * step.number:
        return None
    gain = Gain(0.4 * time.number, time.number, "half with fewer hand-offs, all if overlapped")
    return Finding(
        headline=f"Stage hand-offs cost {time} of a step.",
        confidence=0.75,
        because=(
            Reason.of(f"{count} sends and receives a step and stage take {time}, waiting left out", time, count),
            Reason.of(f"that is {time.number / step.number:.0%} of the step", step),
        ),
        category=Category.COMMUNICATION,
        gain=gain,
        fixes=_fixes(gain),
        avoid="More virtual stages: each adds hand-offs.",
        next=(RANK_TRACES, NCCL_TESTS),
    )


def _slow_link(evidence: Evidence) -> Finding | None:
    """One of several like links: what it costs was replayed."""
    cost, ratio, step = evidence.get(w.LINK_COST), evidence.get(w.LINK_RATIO), evidence.get(q.JOB_STEP)
    where = evidence.text(w.LINK)
    if not (cost and ratio and step) or cost.number < SLOW_LINK * step.number:
        return None
    gain = Gain(cost.number, cost.number, "replayed with this link like the others")
    return Finding(
        headline=f"The link between {where} is slow: hand-offs over it cost {cost} of every {step}.",
        confidence=0.93,
        because=(
            Reason.of(f"a hand-off between {where} takes {ratio} that of the other links", ratio, cost),
            *of_the_job(evidence),
        ),
        gain=gain,
        fixes=(
            Fix(f"Look at the link between {where}: cable, switch port, NIC and PCIe counters of both nodes", gain),
            Fix("Move one of the two stages to another node", gain, cost="a restart"),
            *_fixes(None)[:1],
        ),
        avoid="Tuning all hand-offs: the other links are well.",
        next=(NCCL_TESTS, RANK_TRACES),
        explains=("pipeline-bubble", "exposed-communication"),
    )


def _stated_share(evidence: Evidence) -> Finding | None:
    share = evidence.get(stated.P2P_SHARE)
    if share is None or share.number < LONG:
        return None
    if share.number <= evidence.value(expected.BUBBLE_SCHEDULE, 0.0):
        return None  # a stage waits in its receive while the pipeline fills and drains: so much is the schedule's own
    return Finding(
        headline=f"Stage hand-offs take {share} of a micro-batch's compute.",
        confidence=0.7,
        because=(Reason.of(f"send and receive: {share} of a micro-batch", share),),
        fixes=_fixes(None),
        avoid="More virtual stages: each adds hand-offs.",
        next=(RANK_TRACES, NCCL_TESTS),
    )


def _fixes(gain: Gain | None) -> tuple[Fix, ...]:
    return (
        Fix("Overlap hand-offs with compute", gain, cost="an option of the framework"),
        Fix("Larger micro-batches, or fewer chunks a rank", gain, risk="a larger bubble"),
        Fix("Place neighbouring stages next to each other", cost="rank order"),
    )
