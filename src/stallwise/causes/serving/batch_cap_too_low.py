"""A scheduler cap keeps requests waiting although memory for them is free.

## What it means
`max_num_seqs`, `max_running_requests` or `max_batch_size` bounds how many requests run together. They wait at that bound
while the KV cache is mostly empty.

## Why it costs
Decode reads every weight once per iteration for all running requests. Doubling a small batch nearly doubles throughput at
nearly the same latency; a low cap throws that away and turns it into queueing.

## What else looks so
A full cache also makes requests wait, but then KV use is high. A long prefill also holds requests back, but then nothing
is generated meanwhile. A token budget that is too small (max_num_batched_tokens) shows a running count that moves.

## Fix
Raise the cap to what the KV cache holds, or to the batch at which the latency target breaks.

## How the gain is found
Throughput grows with the batch until reading KV or arithmetic outweighs reading weights; the bound given is the number of
requests that the free cache would hold, never more than were waiting.
"""

from __future__ import annotations

from dataclasses import replace

from stallwise.causes.serving._each_run import facts, surest
from stallwise.doctor.findings.clue import Clue, above
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import SERVE_LOG
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence

ROOM = 0.6  # KV use below which memory cannot be why requests wait
QUEUED = 0.3  # share of samples with a queue: not a passing burst
CROWDED = 0.4  # of the engine's time that prefill needs
ALWAYS = 0.95  # of what runs now: a mean since the start as high says that hardly ever another number ran


@rule()
def batch_cap_too_low(evidence: Evidence) -> Finding | None:
    """Waiting at the cap with an empty cache; a batch that grows no more with the load, or never did."""
    found = surest(evidence, _judge) if evidence.all(serving.SAMPLES) else None
    return found or _same_batch(evidence)


def _judge(evidence: Evidence) -> Finding | None:
    value = evidence.value
    kv, queued, waiting = value(serving.KV_QUEUED), value(serving.WAITING_SHARE, 0.0), value(serving.WAITING, 0.0)
    if not kv < ROOM or queued < QUEUED or value(serving.LONE_PREFILL_SHARE, 0.0) >= QUEUED:
        return None
    most, cap, pinned = value(serving.RUNNING_MAX), value(serving.MAX_SEQS), value(serving.PINNED_AT)
    if cap == most and cap > 0:
        confidence, limit = 0.95, cap
    elif pinned == pinned and pinned == most:
        confidence, limit = 0.75, pinned
    else:
        return None
    if value(serving.PREFILL_LOAD, 0.0) >= CROWDED:
        return None  # prompts take the time: a larger batch would share what they leave
    batch = value(serving.COMPUTE_BATCH)
    if batch == batch and limit > 2 * batch:
        return None  # the batch is past the ridge: a higher cap only shares the same arithmetic among more
    room = limit / kv if kv > 0 else float("inf")
    reach = min(room, limit + max(waiting, 1.0))
    because = (
        Reason.of(f"running never passes {limit:.0f} while requests wait", *facts(evidence, serving.RUNNING_MAX, serving.PINNED_AT)),
        Reason.of(f"KV use is {kv:.1%} then", *facts(evidence, serving.KV_QUEUED)),
        *((Reason.of(f"the cap was set to {cap:.0f}", *facts(evidence, serving.MAX_SEQS)),) if cap == cap else ()),
    )  # fmt: skip
    headline = f"Only {limit:.0f} may run at once while others wait and {1 - kv:.0%} of the KV cache is free."
    return _found(headline, confidence, because, limit, reach, f" (the free cache holds {min(room, 1e6):,.0f})")


def _same_batch(evidence: Evidence) -> Finding | None:
    """Loads that change nothing but the wait; or a single page whose mean batch since the start is what runs now, beside a queue."""
    pinned, running, waiting = (evidence.get(q) for q in (serving.PINNED_AT, serving.RUNNING, serving.WAITING))
    mean = evidence.get(serving.BATCH_MEAN)
    if evidence.value(serving.KV_MAX, 0.0) >= ROOM:
        return None
    if pinned is not None and pinned.number > 0 and evidence.all(serving.LOAD_GROWTH):
        limit, most = pinned.number, max((f.number for f in evidence.all(serving.CONCURRENCY)), default=pinned.number)
        because = Reason.of(
            f"from {limit:.0f} requests at once on, more of them change neither the rate nor the pace of a running one, "
            f"and the first token comes {evidence.value(serving.TTFT_GROWTH):.0f}x later",
            *facts(evidence, serving.PLATEAU_RATE, serving.TTFT_GROWTH),
        )
    elif running and waiting and mean and waiting.number > 0 and mean.number >= ALWAYS * running.number >= ALWAYS:
        limit, most = running.number, running.number + waiting.number
        because = Reason.of(
            f"{waiting} wait while {running} runs, and since the start {mean.number:.3g} were computed together on average",
            running, waiting, mean,
        )  # fmt: skip
    else:
        return None
    headline = f"No more than {limit:.0f} ever run at once, however many wait."
    against = (
        ()
        if evidence.all(serving.KV_MAX)
        else (Reason("how full the KV cache is was not seen: a full one holds the batch as well"),)
    )
    return replace(_found(headline, 0.7, (because,), limit, max(most, limit + 1), ""), against=against)


def _found(
    headline: str, confidence: float, because: tuple[Reason, ...], limit: float, reach: float, holds: str
) -> Finding:
    return Finding(
        headline=headline,
        confidence=confidence,
        because=because,
        fixes=(
            Fix(f"Raise max_num_seqs (slots, max batch) from {limit:.0f} to {reach:.0f} or more{holds}",
                worth=f"up to {reach / limit:.1f}x throughput while decode is bound by memory; the queue goes",
                cost="a restart", risk="time per token rises with the batch: stop where it meets the target"),
            Fix("Then raise max_num_batched_tokens if prefill holds the batch back", worth="shorter queue",
                risk="longer iterations"),
        ),
        not_here=(Reason("a low KV use: it is the consequence, not a sign of health"),),
        avoid="Adding replicas: this one is not full.",
        next=(SERVE_LOG,),
        explains=("queue-saturated",),
    )  # fmt: skip


# A cap on running requests, while only suspected.
def _at_the_cap(evidence: Evidence) -> bool | None:
    """Every slot taken, a queue at the door, and the cache far from full."""
    running, cap = evidence.value(serving.RUNNING), evidence.value(serving.MAX_SEQS)
    return (
        running >= 0.95 * cap and evidence.value(serving.KV_MAX, 0.5) < 0.6 and evidence.value(serving.WAITING, 1.0) > 0
    )


CLUES = (
    above(serving.WAITING, 0, "fair, needed", "requests wait", "nobody waits"),
    above(serving.KV_MAX, 0.6, "against", "the KV cache is used", "the KV cache is mostly empty"),
    Clue(
        (serving.RUNNING, serving.MAX_SEQS),
        _at_the_cap,
        "decisive, needed",
        "every slot is taken while the cache has room",
        "slots are free or the cache is full",
    ),
)
