"""Each GPU computes so little between exchanges that communication takes longer than the compute it could hide behind.

## What it means
The bytes of a step are set by the model, the compute by the batch on each GPU. With a small share of the batch a GPU
has less compute than communication, so even perfect overlap leaves some of it bare.

## Why it costs
Beyond that point adding GPUs at a fixed global batch adds communication and little speed.

## What else looks so
Slow links make the same picture with a healthy batch: compare the bus bandwidth with what the links should give. A
late rank makes collectives long without moving more bytes.

## Fix
More samples on each GPU (larger micro-batch, gradient accumulation), fewer GPUs, or a layout that moves fewer bytes.

## How the gain is found
The communication that compute cannot cover, halved by twice the batch on each GPU.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCCL_TESTS, RANK_TRACES
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category

MORE_THAN_COMPUTE = 1.0  # communication over compute: above this overlap cannot save it
NOTICEABLE = 0.15  # of the step, exposed
LARGE_BYTES = 4e6  # the links are used; smaller messages are a matter of latency and buckets
CLUES = (
    Clue(
        (q.COMM_TIME, q.COMPUTE_BUSY),
        lambda e: e.value(q.COMM_TIME) > MORE_THAN_COMPUTE * e.value(q.COMPUTE_BUSY),
        "fair",
        "communication takes longer than compute",
        "compute outweighs communication",
    ),
)


@rule(q.COMM_TIME, q.COMPUTE_BUSY, q.COMM_SHARE, q.COMM_EXPOSED)
def per_gpu_batch_too_small(evidence: Evidence) -> Finding | None:
    """Moving bytes takes longer than computing, with messages that do use the links."""
    time, compute = evidence.get(q.COMM_TIME), evidence.get(q.COMPUTE_BUSY)
    exposed, share = evidence.get(q.COMM_EXPOSED), evidence.get(q.COMM_SHARE)
    if not (time and compute and exposed and share) or share.number < NOTICEABLE or compute.number <= 0:
        return None
    waiting, moving = evidence.value(q.WAIT_FOR_PEERS, 0.0), evidence.value(q.MOVING_BYTES, 0.0)
    seen = waiting + moving > 0
    real = moving / (waiting + moving) if seen else 1.0
    bytes_s = time.number * real
    if bytes_s < MORE_THAN_COMPUTE * compute.number or evidence.value(q.MESSAGE_MEDIAN, 0.0) < LARGE_BYTES:
        return None
    bare = bytes_s - compute.number
    gain = Gain(
        0.3 * bare, min(0.5 * bytes_s, exposed.number * real), "half the communication a sample with twice the batch"
    )
    return Finding(
        headline=f"Each GPU computes {compute} a step and communicates {time}: too little work a GPU.",
        confidence=0.7 if seen else 0.55,
        because=(
            Reason.of(f"communication is {bytes_s / compute.number:.1f}x the compute, so overlap cannot hide it", time, compute),
            Reason.of(f"{share} of the step shows it", share),
        ),
        category=Category.COMMUNICATION,
        gain=gain,
        against=() if seen else (Reason("one rank's trace cannot tell moving bytes from waiting"),),
        fixes=(
            Fix("Twice the samples on each GPU, or accumulate gradients over two micro-batches", gain, cost="memory, or a larger global batch",
                risk="the learning rate may need to follow"),
            Fix("Fewer GPUs for this job", worth="the same step time for less money"),
        ),
        avoid="More GPUs at the same global batch.",
        next=(RANK_TRACES, NCCL_TESTS),
        explains=("exposed-communication",),
    )  # fmt: skip
