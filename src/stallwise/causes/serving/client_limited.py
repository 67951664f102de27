"""The load generator is the limit: the engine mostly waits for the next request.

## What it means
One request runs, or a few, none ever waits, and the cache is nearly empty. Whoever sends requests waits for each answer before the next, or
cannot send faster.

## Why it costs
Nothing is wrong with the service; a benchmark of it measures the client. Decode with one request reads all weights for one
token at a time.

## What else looks so
A cap of one also runs one request, but others wait. A quiet hour looks the same.

## Fix
Send more at once: asynchronous clients, higher concurrency, several client processes.

## How the gain is found
Decode is bound by memory at a batch of one, so the rate grows almost with the number of concurrent requests at first.
"""

from __future__ import annotations

from stallwise.causes.serving._each_run import facts, surest
from stallwise.doctor.findings.clue import above
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import SERVE_BENCH
from stallwise.evidence.catalog import hang, serving
from stallwise.evidence.evidence import Evidence

CLUES = (
    above(serving.RUNNING, 1, "against", "several requests run", "one request runs at a time"),
    above(serving.WAITING, 0, "against", "requests wait", "nobody waits"),
)
EMPTY = 0.05  # KV use
HALF = 0.5  # of the concurrency that the client claims
FEWER = 0.9  # of what the client claims and of what the engine takes: the flat count is not theirs
ENOUGH = 3  # samples
LOADED = 5  # requests at once: an engine with fewer has room for more
STUCK = 6  # last samples in which requests run without a token: then they wait for the engine
ROOMY = 0.25  # KV use
MANY = 20  # samples of ten seconds: a client that never has two in flight sends one at a time


@rule(serving.SAMPLES)
def client_limited(evidence: Evidence) -> Finding | None:
    """One running, none waiting, nothing in memory."""
    return surest(evidence, _judge)


def _judge(evidence: Evidence) -> Finding | None:
    value = evidence.value
    running, waiting, kv = value(serving.RUNNING), value(serving.WAITING_SHARE, 0.0), value(serving.KV_MAX, 0.0)
    claimed = max((f.number for f in evidence.all(serving.CONCURRENCY)), default=float("nan"))
    starved = claimed >= 2 and running <= HALF * claimed and waiting == 0
    most, cap = value(serving.RUNNING_MAX), value(serving.MAX_SEQS, float("inf"))
    capped = running == most and most < FEWER * min(claimed, cap)  # a flat count that neither side has set
    few = value(serving.SAMPLES, 0.0) < ENOUGH
    if value(serving.STUCK_SAMPLES, 0.0) >= STUCK:
        return None
    watched = value(serving.SAMPLES, 0.0) >= MANY
    light = watched and 0 < most < LOADED and kv <= ROOMY  # nobody ever waits, and a few at most are ever there
    if few or waiting > 0 or not ((kv <= EMPTY and (running <= 1 or starved)) or capped or light):
        return None
    if value(serving.PREFILL_RATE, 0.0) > 0 and not value(serving.GENERATION_RATE, 0.0) > 0:
        return None  # embedding traffic: requests live too briefly to be seen running
    at_most = f" ({most:.0f} at most)" if most > running else ""
    because = [
        Reason.of(
            f"{running:.0f} run{'s' if running <= 1 else ''}{at_most}, none waits, KV use stays at {kv:.1%}",
            *facts(evidence, serving.RUNNING, serving.KV_MAX),
        )
    ]
    if rate := evidence.get(serving.GENERATION_RATE):
        because.append(Reason.of(f"{rate} in the median of its samples", rate))
    if starved or capped:
        because.append(
            Reason.of(f"the client means to keep {claimed:.0f} in flight", *facts(evidence, serving.CONCURRENCY))
        )
    alone = most <= 1 and watched
    artifacts = value(serving.IDLE_ARTIFACTS, 0.0)
    return Finding(
        headline=_headline(running, most, claimed),
        confidence=0.8 if starved else 0.7 if capped or alone else 0.6,
        optional=not (starved or capped or alone or light),
        because=tuple(because),
        fixes=(
            Fix("Send concurrently: an async client, higher --max-concurrency, several processes",
                worth="throughput grows almost with concurrency while decode is bound by memory", cost="none on the server"),
        ),
        not_here=(*((Reason(f"{artifacts:.0f} rates of a few tokens a second: averaged over idle time"),) if artifacts else ()),
                  *(Reason.of(f"an earlier error, after which it served: {f.value}", f) for f in evidence.all(hang.RANK_ERROR)[:1])),
        avoid="Tuning the engine: it is idle.",
        next=(SERVE_BENCH,),
    )  # fmt: skip


def _headline(running: float, most: float, claimed: float) -> str:
    if claimed == claimed and running > 1:
        return f"The client keeps only {running:.0f} of {claimed:.0f} requests in flight."
    if running <= 1:
        return "The engine waits for its client: one request at a time."
    return f"The engine waits for its client: at most {most:.0f} requests at once, and nobody queues."
