"""The exchange of tokens or embeddings (all-to-all) takes a large part of the step and nothing hides it.

## What it means
Dispatch and combine of experts, or the exchange of embedding rows, run alone on the device for much of the step.

## Why it costs
Every rank sends to every other: the volume grows with the hidden size and the number of experts a token visits, and
across nodes it runs at the speed of the network.

## What else looks so
Uneven experts: then the exchange is long on all ranks because some receive more. A late rank: all wait inside the
exchange for it.

## Fix
Overlap the exchange with expert or attention compute, send in fp8, keep expert groups inside a node, use kernels made
for it (grouped, NVLink-aware), visit fewer nodes per token.

## How the gain is found
The exposed time of the exchanges, less waiting for peers where all ranks were seen; half of it for overlap.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCCL_TESTS, RANK_TRACES
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

NOTICEABLE = 0.08  # of the step
MOSTLY = 0.5  # of the exposed communication
CLUES = (
    Clue(
        (q.ALL_TO_ALL_TIME, q.COMM_EXPOSED),
        lambda e: e.value(q.ALL_TO_ALL_TIME) > MOSTLY * e.value(q.COMM_EXPOSED),
        "fair, needed",
        "most exposed communication is all-to-all",
        "other collectives dominate",
    ),
)


@rule(q.ALL_TO_ALL_TIME, q.COMM_EXPOSED, q.COMM_SHARE)
def all_to_all_bound(evidence: Evidence) -> Finding | None:
    """Most of the exposed communication is all-to-all that moves bytes, and it is a large part of the step."""
    time, exposed, share = (evidence.get(x) for x in (q.ALL_TO_ALL_TIME, q.COMM_EXPOSED, q.COMM_SHARE))
    if not (time and exposed and share) or share.number <= 0 or exposed.number <= 0:
        return None
    step_s = exposed.number / share.number
    waiting, moving = evidence.value(q.WAIT_FOR_PEERS, 0.0), evidence.value(q.MOVING_BYTES, 0.0)
    real = moving / (waiting + moving) if waiting + moving > 0 else 1.0
    lost_s = time.number * real
    if lost_s < NOTICEABLE * step_s or time.number < MOSTLY * exposed.number:
        return None
    gain = Gain(0.3 * lost_s, 0.7 * lost_s, "overlap hides half of it, give or take")
    seen = waiting + moving > 0
    return Finding(
        headline=f"All-to-all shows for {time} of a step.",
        confidence=0.75 if seen else 0.6,
        because=(
            Reason.of(f"all-to-all alone runs for {time} of {step_s * 1e3:.1f} ms a step", time),
            Reason.of(f"that is {time.number / exposed.number:.0%} of the exposed communication", exposed),
        ),
        category=Category.COMMUNICATION,
        gain=gain,
        against=() if seen else (Reason("one rank's trace cannot tell moving bytes from waiting for a busy expert"),),
        fixes=(
            Fix(
                "Overlap dispatch and combine with compute of another micro-batch",
                gain,
                cost="two micro-batches in flight",
            ),
            Fix("Dispatch in fp8", Gain(0.3 * lost_s, 0.5 * lost_s, "half the bytes one way"), risk="check accuracy"),
            Fix("Keep the expert group inside a node, or limit the nodes a token visits", cost="a new layout"),
        ),
        avoid="More experts per rank group: the exchange grows with them.",
        next=(RANK_TRACES, NCCL_TESTS),
        explains=("exposed-communication",),
    )
