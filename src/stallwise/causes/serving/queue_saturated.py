"""More requests arrive than the service can finish, so the queue and the first-token time grow without bound.

## What it means
The service works at its own pace and that pace is below the offered rate. Nothing else is broken: memory has room, no cap
binds, iterations take what they should.

## Why it costs
Past saturation each second of load adds to everybody's wait. Little's law: queue length is arrival rate times wait.

## What else looks so
A full KV cache, a cap, one huge request, or a busy CPU each make a queue as well; they come first, because fixing them
raises the pace. A burst makes a queue that drains again.

## Fix
Shed or shape load at the door, cache prefixes, use FP8, chunk prefill, separate prefill and decode; then add replicas.

## How the gain is found
Offered rate over achieved rate is the factor of capacity that is missing.
"""

from __future__ import annotations

import math

from stallwise.causes.serving._each_run import facts, surest
from stallwise.causes.serving._story import with_story
from stallwise.doctor.findings.clue import above, grew
from stallwise.doctor.findings.finding import Finding, Fix, Reason
from stallwise.doctor.findings.rule import rule
from stallwise.evidence.capture import SERVE_BENCH, SERVE_METRICS
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.ledger import Category

CLUES = (
    above(serving.CONCURRENCY, 1, "required", "several requests are in flight", "one request at a time: nobody queues"),
    above(serving.WAITING, 0, "hint, needed", "requests wait", "nobody waits"),
    grew(
        serving.TTFT,
        4.0,
        "hint",
        "the first token waits many times longer under load",
        "the first token hardly waits longer",
    ),
)
GROWING = 0.01  # requests a second: a queue that gains one in 100 s drains by itself in quiet minutes
MOSTLY = 0.6  # of the samples with a queue
FULL = 0.9
LONGER = 4.0  # times the first-token time at low load
OUTGREW = (
    2.0  # times what the load grew: a batch that takes everybody in makes each wait for the others once, and no more
)
SLOWER = 2.0  # times, later tokens: a larger batch alone costs less
BUSY = 0.8  # GPU utilisation below which something else than the GPU sets the pace
FEW_SAMPLES = 2.0  # a page, or one scraped twice
SHORT_QUEUE = 3.0  # requests
QUEUE_OF_RUNNING = 0.5  # waiting over running
IN_QUEUE = 0.3  # of a request's life: more than a full batch makes the last of it wait
ENOUGH_REQUESTS = 20.0  # so that the first burst is not all there was
SHORT = 1.1  # offered over achieved: below this the generator's own ramp explains it

AVOID = "Longer client timeouts: past saturation no timeout is long enough."
FULL_CACHE = Reason("the KV cache is full: its size is the nearer cause")
UNSEEN = Reason("these numbers alone do not show whether memory, prefill or a cap sets this pace")
LOOK_INSIDE = Fix(
    "Look inside under the same load: KV use, running and waiting tell what sets the pace",
    worth="names the nearer cause",
)
BOUND = Fix(
    "Bound the queue and refuse early (429 with retry-after): a timeout costs the same and helps nobody",
    worth="TTFT of admitted requests back to prefill plus one iteration",
)


@rule()
def queue_saturated(evidence: Evidence) -> Finding | None:
    """A queue that grows with nothing else in the way; under several loads, waits that outgrow the load."""
    if evidence.all(serving.SAMPLES) and (found := surest(evidence, _judge)):
        return found
    seen = next(filter(None, (judge(evidence) for judge in (_outgrown, _outrun, _counted, _glimpsed))), None)
    return with_story(seen, evidence) if seen else None


def _seen(
    headline: str, confidence: float, because: tuple[Reason, ...], fixes: tuple[Fix, ...], against: Reason
) -> Finding:
    return Finding(
        headline=headline, confidence=confidence, because=because, against=(against,), category=Category.QUEUE,
        fixes=fixes, avoid=AVOID, next=(SERVE_METRICS, SERVE_BENCH),
    )  # fmt: skip


def _more(times: float) -> Fix:
    return Fix("More replicas", worth=f"{times:.1f}x as many" if times == times else "in proportion", cost="GPUs")


def _outgrown(evidence: Evidence) -> Finding | None:
    """Two loads and more: waits that grew far more than the load, or a load that no longer raises the rate."""
    value = evidence.value
    waits, load, rate = value(serving.TTFT_GROWTH), value(serving.LOAD_GROWTH), value(serving.RATE_GROWTH)
    plateau = evidence.get(serving.PLATEAU_RATE)
    if not waits >= LONGER or value(serving.PLATEAU_GPU_BUSY, 1.0) < BUSY:
        return None
    if plateau is None and not waits > OUTGREW * load:
        return None
    if value(serving.TPOT_GROWTH) >= SLOWER and not value(serving.CHUNKED_PREFILL) > 0:
        return None  # later tokens suffer as well: whole prompts run between them
    full = value(serving.KV_MAX, 0.0) >= FULL or value(serving.PREEMPTED, 0.0) > 0
    ratio = facts(evidence, serving.LOAD_GROWTH, serving.RATE_GROWTH)
    gave = f"{load:.1f}x the load gave {rate:.1f}x the rate" if rate == rate else f"{load:.1f}x the load"
    past = (
        f"Past {plateau.number:.3g} {_of_rate(plateau)} a second more load only makes users wait"
        if plateau
        else "Requests wait for each other"
    )
    first = evidence.get(serving.TTFT) or evidence.get(serving.TTFT_TAIL)
    longer = f"the first token comes {waits:.0f}x later" if first else f"a request takes {waits:.0f}x as long"
    return _seen(
        f"{past}: {longer}.", 0.4 if full else 0.7,
        (Reason.of(gave, *ratio), Reason.of(_grew(evidence, waits) or longer, *facts(evidence, serving.TTFT_GROWTH))),
        (LOOK_INSIDE, BOUND, _more(math.nan)), FULL_CACHE if full else UNSEEN,
    )  # fmt: skip


def _of_rate(plateau: Fact) -> str:
    return "tokens" if plateau.note == serving.OUTPUT_RATE.name else "requests"


def _grew(evidence: Evidence, waits: float) -> str:
    """From and to, where one statistic of the first token is known under both loads."""
    for quantity in (serving.TTFT, serving.TTFT_TAIL):
        then = next((f for f in evidence.all(quantity) if f.scope.run == "before"), None)
        now = next((f for f in evidence.all(quantity) if f.scope.run is None), None)
        if then and now:
            return f"the first token came later: {then} -> {now} ({waits:.0f}x)"
    return ""


def _outrun(evidence: Evidence) -> Finding | None:
    """One load test: fewer requests were finished in a second than sent, and most of a request's life went by before its first token."""
    value = evidence.value
    offered, achieved = evidence.get(serving.OFFERED_RATE), evidence.get(serving.ACHIEVED_RATE)
    if offered is None or achieved is None or not math.inf > offered.number > SHORT * achieved.number > 0:
        return None
    first, rest = value(serving.TTFT), value(serving.TPOT) * value(serving.OUTPUT_TOKENS)
    if not (first == first and first >= IN_QUEUE * (first + rest)):
        return None
    share, behind = first / (first + rest), offered.number / achieved.number
    because = (
        Reason.of(f"{behind:.1f}x as many requests were sent as finished", offered, achieved),
        Reason.of(f"{first:.3g} s of {first + rest:.3g} s, {share:.0%} of a request's life, pass before its first token",
                  *facts(evidence, serving.TTFT, serving.TPOT, serving.OUTPUT_TOKENS)),
    )  # fmt: skip
    hold = Fix(
        f"Hold the load at {achieved.number:.3g} requests a second", worth="TTFT back to prefill plus one iteration"
    )
    headline = f"{offered.number:.3g} requests a second come and {achieved.number:.3g} are finished: the queue grows."
    return _seen(headline, 0.65, because, (LOOK_INSIDE, hold, _more(behind)), UNSEEN)


def _counted(evidence: Evidence) -> Finding | None:
    """Counters of a single page: where requests spent their lives since the engine started."""
    value = evidence.value
    queue, prefill, decode = (value(q) for q in (serving.QUEUE_TIME, serving.PREFILL_TIME, serving.DECODE_TIME))
    whole = value(serving.REQUEST_TIME)
    if whole != whole:
        whole = queue + max(prefill, 0.0) + max(decode, 0.0) if prefill == prefill or decode == decode else whole
    done = value(serving.REQUESTS_DONE, ENOUGH_REQUESTS)
    if not (queue > 0 and whole > 0) or queue < IN_QUEUE * whole or done < ENOUGH_REQUESTS:
        return None
    if value(serving.QUEUE_DRAINED, 0.0) > 0:
        return None  # it comes and goes: something holds requests up, and not their number
    full = value(serving.KV_MAX, value(serving.KV_MEDIAN, 0.0)) >= FULL
    known = ((n, x) for n, x in (("queue", queue), ("prefill", prefill), ("decode", decode)) if x == x)
    parts = ", ".join(f"{name} {x:.3g} s" for name, x in known)
    of = facts(evidence, serving.QUEUE_TIME, serving.REQUEST_TIME, serving.PREFILL_TIME, serving.DECODE_TIME)
    return _seen(
        f"Requests spend {queue / whole:.0%} of their time in the queue: the service gets more than it takes in.",
        0.5 if full else 0.65, (Reason.of(f"of {whole:.3g} s a request: {parts}", *of),), (LOOK_INSIDE, BOUND),
        Reason("counters since the start do not tell when: a storm that is over looks the same"),
    )  # fmt: skip


def _glimpsed(evidence: Evidence) -> Finding | None:
    """A page or two: a queue as long as half of what runs is no breath of the scheduler, but once is not always."""
    value = evidence.value
    waiting, running = value(serving.WAITING, 0.0), value(serving.RUNNING, 0.0)
    if evidence.get(serving.RUNNING) is None:
        return None  # whoever waits may wait for anything
    if value(serving.SAMPLES, 0.0) > FEW_SAMPLES or waiting < max(SHORT_QUEUE, QUEUE_OF_RUNNING * running):
        return None
    kv = evidence.get(serving.KV_QUEUED)
    because = [Reason.of(f"{waiting:.0f} wait, {running:.0f} run" + (f", KV use is {kv}" if kv else ""),
                         *facts(evidence, serving.WAITING, serving.RUNNING, serving.KV_QUEUED))]  # fmt: skip
    if kv is not None and kv.number < FULL:
        because.append(Reason("the cache has room: a cap on running requests or slow prefill holds them back"))
    again = Fix(
        "Read the metrics again under the same load, a minute apart",
        worth="tells a burst from a state, and names what holds requests back",
    )
    cap = Fix(
        "Raise the cap on running requests (max_num_seqs, slots, max batch) if the cache stays empty",
        worth="shorter queue",
        risk="time per token grows with the batch",
    )
    headline = f"At the moment that was read {waiting:.0f} requests wait behind {running:.0f} running."
    return _seen(
        headline, 0.55, tuple(because), (again, cap), Reason("one reading does not tell whether the queue drains")
    )


def _judge(evidence: Evidence) -> Finding | None:
    value = evidence.value
    waiting, running, growth = value(serving.WAITING, 0.0), value(serving.RUNNING), value(serving.WAITING_GROWTH, 0.0)
    offered, achieved = value(serving.OFFERED_RATE), value(serving.ACHIEVED_RATE)
    behind = offered / achieved if achieved > 0 else float("nan")
    queued = value(serving.WAITING_SHARE, 0.0)
    if not (queued >= MOSTLY and (growth > GROWING or behind > SHORT) and waiting > 0 and running == running):
        return None
    full = value(serving.KV_QUEUED, 0.0) >= FULL
    busy = value(serving.LONE_PREFILL_SHARE, 0.0) >= 0.3
    missing = (
        f"{behind:.1f}x the load it can finish" if behind == behind else f"{growth:.2f} requests a second too many"
    )
    because = [Reason.of(f"{waiting:.0f} wait behind {running:.0f} running, growing by {growth:.2g} a second",
                         *facts(evidence, serving.WAITING, serving.RUNNING, serving.WAITING_GROWTH))]  # fmt: skip
    if behind == behind:
        rates = facts(evidence, serving.OFFERED_RATE, serving.ACHIEVED_RATE)
        because.append(Reason.of(f"{offered:.3g} requests a second offered, {achieved:.3g} finished", *rates))
    return Finding(
        headline=f"The queue grows: the service gets {missing}.",
        confidence=0.4 if full or busy else 0.8 if behind > SHORT else 0.65,
        because=tuple(because),
        against=(FULL_CACHE,) if full else (),
        fixes=(
            BOUND,
            Fix("Cheaper requests: prefix caching, FP8 weights and KV, speculative decoding at small batch",
                worth="1.3 to 2x capacity each where it applies", risk="check accuracy"),
            Fix("Chunked prefill, or separate prefill and decode workers, if time per token also suffers", worth="steadier tokens"),
            _more(behind),
        ),
        not_here=(Reason("GPU utilisation near 100%: expected at saturation, and says nothing about efficiency"),),
        avoid=AVOID,
        next=(SERVE_BENCH, SERVE_METRICS),
    )  # fmt: skip
