"""Collectives run with nothing behind them: the GPU waits for bytes.

## What it means
While a collective moves bytes no other kernel runs. Either nothing was there to overlap with (tensor parallelism, a
last bucket), or the overlap is prevented: one stream, an early wait, a first bucket that comes late.

## Why it costs
Communication that hides behind compute is free; the part that shows is step time.

## What else looks so
A rank that waits inside the collective for a late peer shows the same long kernel, but few bytes move: look at who
arrives last. A single rank's trace cannot tell the two apart.

## Fix
Overlap first (bucketed all-reduce during backward, prefetch of sharded weights, asynchronous tensor parallelism), then
move fewer bytes (reduce in bf16, accumulate gradients, keep tensor parallelism inside a node), then faster paths.

## How the gain is found
The time in which only communication runs, less the waiting for late ranks where all ranks were seen. At least the part
that other kernels of the step could have covered; at most all of it.
"""

from __future__ import annotations

from stallwise.doctor.findings.clue import Clue
from stallwise.doctor.findings.finding import Finding, Fix, Gain, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import NCCL_LOG, NCCL_TESTS, RANK_TRACES
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.ledger import Category

NOTICEABLE = 0.05  # of a step; well overlapped jobs show 1 to 4%
LARGE = 0.15
MOSTLY_WAITING = 0.6  # of the exposed time across ranks: then a late peer is the cause, not the bytes
COVERABLE = 0.5  # of the exposed time, when there is compute to hide it behind: buckets and prefetch hide about so much
CLUES = (
    Clue(
        (q.COMM_SHARE,),
        lambda e: e.value(q.COMM_SHARE) > LARGE,
        "strong",
        "much of the step is communication that nothing hides",
        "little communication is exposed",
    ),
)


@rule(q.COMM_EXPOSED, q.COMM_SHARE)
def exposed_communication(evidence: Evidence) -> Finding | None:
    """Bytes move while nothing else runs, for a noticeable part of the step."""
    exposed, share = _typical(evidence.all(q.COMM_EXPOSED)), _typical(evidence.all(q.COMM_SHARE))
    waiting, moving = evidence.get(q.WAIT_FOR_PEERS), evidence.get(q.MOVING_BYTES)
    step_s = exposed.number / share.number if share.number > 0 else 0.0
    shown_s = exposed.number
    because = [Reason.of(f"only collectives run for {exposed} of a step ({share})", exposed, share)]
    seen_all = waiting is not None and moving is not None
    if waiting is not None and moving is not None:
        whole = waiting.number + moving.number
        if whole > 0 and waiting.number > MOSTLY_WAITING * whole:
            return None  # the straggler's finding says it
        shown_s = min(moving.number, exposed.number)
        because.append(Reason.of(f"of that, ranks wait {waiting} for each other and move bytes for {moving}", waiting))
    if step_s <= 0 or shown_s < NOTICEABLE * step_s:
        return None
    compute = _typical(evidence.all(q.COMPUTE_BUSY)) if evidence.all(q.COMPUTE_BUSY) else None
    coverable = min(shown_s, compute.number) if compute else shown_s
    count, size = evidence.get(q.COLLECTIVES), evidence.get(q.MESSAGE_MEDIAN)
    if count:
        because.append(Reason.of(f"{count} collectives a step" + (f", typically {size}" if size else ""), count))
    because += _slow_groups(evidence)
    against = () if seen_all else (
        Reason("one rank's trace cannot tell moving bytes from waiting for a late rank: both are this kernel"),
    )  # fmt: skip
    return Finding(
        headline=f"Communication shows: {exposed} of a step nothing else runs.",
        confidence=_confidence(shown_s / step_s, seen_all),
        because=tuple(because),
        category=Category.COMMUNICATION,
        gain=Gain(
            COVERABLE * coverable if seen_all else 0.3 * coverable,
            shown_s,
            "half of what compute could hide, to all of it",
        ),
        against=against,
        fixes=_fixes(evidence, shown_s, coverable),
        avoid="Faster links first: what is overlapped needs no faster link.",
        next=(NCCL_LOG, NCCL_TESTS) if seen_all else (RANK_TRACES,),
    )


def _typical(facts: list[Fact]) -> Fact:
    """Of many ranks the middle one."""
    ordered = sorted(facts, key=lambda f: f.number)
    return ordered[len(ordered) // 2]


def _slow_groups(evidence: Evidence) -> list[Reason]:
    """Groups whose bytes move slower than the links' interval allows, waiting already removed."""
    found = []
    for rate in evidence.all(q.BUS_BANDWIDTH):
        should = next((f for f in evidence.all(q.BUS_EXPECTED) if f.scope == rate.scope), None)
        if should is not None and should.low is not None and rate.number < should.low:
            found.append(Reason.of(f"{rate.note} moves at {rate} where {should} should be possible", rate, should))
    return found[:2]


def _confidence(share: float, seen_all: bool) -> float:
    if seen_all:
        return 0.6 + 0.3 * min(share / LARGE, 1.0)
    return 0.45 + 0.35 * min(share / (2 * LARGE), 1.0)  # half of such waits turn out to be a late peer


def _fixes(evidence: Evidence, shown_s: float, coverable_s: float) -> tuple[Fix, ...]:
    overlap = Gain(0.3 * coverable_s, coverable_s, "as far as compute can cover it")
    fewer = Gain(0.3 * shown_s, 0.5 * shown_s, "half the bytes")
    return (
        Fix("Overlap it: bucketed gradients during backward, prefetched shards, no wait before it is needed", overlap,
            cost="options of DDP/FSDP/Megatron", risk="a little memory for buckets"),
        Fix("Reduce gradients in bf16, or accumulate over micro-batches", fewer, cost="one option",
            risk="rounding in the reduction"),
        Fix("Keep the chattiest axis (tensor, expert) inside a node", cost="a new layout"),
    )  # fmt: skip
