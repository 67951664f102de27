"""Gradients travel in many small collectives that pay latency instead of using the links.

## What it means
The median reduction is far below the size at which a link is busy (1 to 8 MB), and there are many of them a step. Each
pays its launch and its hops in full.

## Why it costs
A reduction of 100 kB takes about as long as one of 1 MB. A hundred of them cost a hundred times the latency, and while
they run one after another nothing hides them.

## What else looks so
A late rank makes small collectives long too; then they wait, and merging them changes nothing. Small all-reduces of
tensor parallelism in decoding are small by nature.

## Fix
Larger buckets (DDP's bucket_cap_mb, FSDP's wrapping, flattened gradients), so that a step has a handful of reductions.

## How the gain is found
Their exposed time, less the time of the same bytes in a few merged reductions.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCCL_TESTS, RANK_TRACES
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

MANY = 16  # reductions a step; fewer are not worth merging
NOTICEABLE = 0.03  # of the step
MERGED_SHARE = 0.25  # of the small ones' time that the bytes themselves need, at most: below the knee latency rules
CLUES = (
    Clue(
        (q.SMALL_COUNT,),
        lambda e: e.value(q.SMALL_COUNT) >= MANY,
        "fair",
        "many small reductions a step",
        "reductions are few or large",
    ),
)


@rule(q.SMALL_TIME, q.SMALL_COUNT, q.SMALL_SIZE)
def bucket_too_small(evidence: Evidence) -> Finding | None:
    """Many reductions below the knee, exposed for a noticeable part of the step."""
    time, count, size = evidence.get(q.SMALL_TIME), evidence.get(q.SMALL_COUNT), evidence.get(q.SMALL_SIZE)
    exposed, share = evidence.get(q.COMM_EXPOSED), evidence.get(q.COMM_SHARE)
    if not (time and count and size and exposed and share) or share.number <= 0 or exposed.number <= 0:
        return None
    step_s = exposed.number / share.number
    waiting, moving = evidence.value(q.WAIT_FOR_PEERS, 0.0), evidence.value(q.MOVING_BYTES, 0.0)
    real = moving / (waiting + moving) if waiting + moving > 0 else 1.0
    lost_s = time.number * real
    if count.number < MANY or lost_s < NOTICEABLE * step_s:
        return None
    each_s = time.number / count.number
    gain = Gain(
        (1 - 2 * MERGED_SHARE) * lost_s, (1 - MERGED_SHARE) * lost_s, "their time less that of the merged bytes"
    )
    return Finding(
        headline=f"{count} reductions a step of {size} each pay latency, not bandwidth.",
        confidence=0.8 if real > 0.7 else 0.6,
        because=(
            Reason.of(f"{count} reductions below 1 MB a step, typically {size}, show for {time}", count, size, time),
            Reason.of(f"each shows for {each_s * 1e6:.0f} us, which is latency at this size", time),
        ),
        category=Category.COMMUNICATION,
        gain=gain,
        fixes=(
            Fix(
                "Raise the bucket size (DDP bucket_cap_mb 25 to 100) or flatten gradients",
                gain,
                cost="memory of a bucket",
            ),
            Fix("Reduce once after several micro-batches (no_sync)", gain, cost="a context manager"),
        ),
        avoid="Another algorithm or protocol for NCCL: the messages stay small.",
        next=(RANK_TRACES, NCCL_TESTS),
        explains=("exposed-communication",),
    )
