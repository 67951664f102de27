"""A serving engine is in line when, under load, nobody waits long, nobody is thrown out and the cache has room.

Refuted by: the worst moment instead of the middle one (the fullest cache, any queue, the slowest hundredth of tokens and first
tokens), requests that were given up or computed again, prompts that starve running answers, requests that run without a token.
Whether tokens come as fast as they could is known only where a floor for them is. One that is idle or hardly runs shows nothing of load.
"""

from __future__ import annotations

from stallwise.causes.health._ceiling import WEIGHT_LEVERS
from stallwise.causes.health._second_number import highest, of_now
from stallwise.causes.health._served import described, is_engine, line_of
from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.program_end import before_shutdown
from stallwise.doctor.findings.proof import Limit, Proof
from stallwise.doctor.findings.step_facts import ms, percent
from stallwise.evidence.capture import SERVE_BENCH, SERVE_METRICS
from stallwise.evidence.catalog import hang
from stallwise.evidence.catalog import serving as v
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.quantity import Quantity

NEAR_FLOOR = 1.5  # times what one decode iteration should take: host time, mixed prefill and sampling lie below
ROOM = 0.90  # of the KV cache: above it the next long request evicts another
BRIEF = 0.05  # of the samples
TAIL = 4.0  # times the floor, or the usual first token: what chunked prompts and long ones explain lies below
LOST_REQUESTS = {
    v.ABORTED: "requests were given up",
    v.RESCHEDULED: "requests lost their KV and were computed again",
    v.PREFILL_STALLS: "samples show prompts that starve running answers",
    v.PAUSED: "requests were paused for lack of KV",
}
LOADED = 5.0  # requests at once: an engine with a few shows nothing about load
SERVED = 30.0  # requests: fewer show no spread
FEW = 10.0  # requests: fewer have no slowest tenth
WATCHED = 6.0  # samples: a minute of an engine that prints one each ten seconds
DEAD = ("engine-dead", "engine-stalled", "process-killed")
LATE_S = 2.0  # a first token later than this is a complaint by itself
QUEUED = 0.2  # of a request's time in the queue
SEEN = (v.RUNNING, v.RUNNING_MAX, v.WAITING, v.REQUESTS_DONE, v.SAMPLES)
NO_FLOOR = "whether tokens come as fast as they could is not in this file"
NO_LOAD = "how it behaves under load is not in this file"
TIMES = ((v.TTFT_MEDIAN, v.TTFT_TAIL), (v.TPOT_MEDIAN, v.TPOT_TAIL), (v.REQUEST_MEDIAN, v.REQUEST_TAIL))
NO_PARTS = "what a request's time consists of is not on this page (no time to first token, no time in the queue)"


def engine_state(evidence: Evidence) -> Proof | None:
    """Queue, preemptions, KV and the times of requests."""
    seen_now = [f for q in SEEN for f in evidence.all(q) if f.scope.run != "before"]
    if not seen_now or not is_engine(evidence):
        return None
    says = described(evidence)
    seen, floor = _most(evidence, v.DECODE_SEEN), evidence.value(v.DECODE_EXPECTED)
    near = f"a token in {ms(seen)} where memory allows {ms(floor)}" if seen == seen and floor == floor else ""
    out = _out_of_line(evidence, seen, floor) or _refuted(evidence, floor)
    lacks = out or _too_little(evidence, says)
    failures = _errors(evidence)
    sources = tuple(dict.fromkeys(f.source for f in seen_now))
    return Proof(
        of="serving engine",
        says=says
        + (f"; {near}" if near else "" if lacks else f"; {NO_FLOOR if _loaded(evidence) else NO_LOAD}")
        + failures,
        because=(Reason(says, sources),),
        confidence=0.85 if near else 0.8,
        limit=None
        if lacks or not near
        else Limit(
            "memory bandwidth",
            min(1.0, floor / seen),
            f"{near}: {percent(min(1.0, floor / seen))} of the memory's rate; to go faster, move fewer bytes a token",
            WEIGHT_LEVERS,
        ),
        lacks=lacks,
        objects=bool(out),
        covers_run=bool(near),
        next=(SERVE_METRICS, SERVE_BENCH) if lacks else (),
    )


def _out_of_line(evidence: Evidence, seen: float, floor: float) -> str:
    waiting, thrown = _most(evidence, v.WAITING, 0.0), _most(evidence, v.PREEMPTED, 0.0)
    kv = max(_most(evidence, q, 0.0) for q in (v.KV_MAX, v.KV_MEDIAN))
    queue, whole = evidence.value(v.QUEUE_TIME), evidence.value(v.REQUEST_TIME)
    if dead := next((e for e in before_shutdown(evidence.events) if e.kind in DEAD), None):
        return f"{' '.join(dead.text.split())[:160]} ({dead.source.where})."
    if (stuck := _most(evidence, v.STUCK_SAMPLES, 0.0)) >= WATCHED:
        return f"requests run, and no token is read or made in the last {stuck:.0f} samples."
    if waiting > 0 or thrown > 0:
        counts = (
            f"{waiting:.0f} requests wait" if waiting > 0 else "",
            f"{thrown:.0f} were thrown out" if thrown > 0 else "",
        )
        return f"{' and '.join(c for c in counts if c)}."
    if kv > ROOM:
        return f"the KV cache is {percent(kv)} full."
    if whole > 0 and queue > QUEUED * whole:
        return f"a request waits {ms(queue)} of its {ms(whole)} in the queue."
    if (first := _most(evidence, v.TTFT)) > LATE_S:
        return f"the first token takes {ms(first)}."
    if seen > NEAR_FLOOR * floor:
        return f"a token takes {ms(seen)} where {ms(floor)} would do."
    last = max((line_of(f.source) for q in (v.SAMPLES,) for f in evidence.all(q)), default=0)
    if last and any(line_of(f.source) > last for f in evidence.all(hang.RANK_ERROR)):
        return "an error comes after the last sign of serving."
    return ""


def _most(evidence: Evidence, quantity: Quantity, default: float = float("nan")) -> float:
    """The worst of all that tell it."""
    worst = highest(of_now(evidence, quantity))
    return worst.number if worst is not None else default


def _refuted(evidence: Evidence, floor: float) -> str:
    """A second number that says otherwise."""
    for quantity, what in LOST_REQUESTS.items():
        if _most(evidence, quantity, 0.0) > 0:
            return f"{_most(evidence, quantity):.0f} {what}."
    if _most(evidence, v.WAITING_SHARE, 0.0) > BRIEF:
        return f"requests wait in {percent(_most(evidence, v.WAITING_SHARE))} of the samples."
    if floor != floor:  # without a floor nothing is claimed of how fast tokens come
        return ""
    tail, ttft, first = (_most(evidence, q) for q in (v.TPOT_TAIL, v.TTFT_TAIL, v.TTFT))
    if tail > TAIL * floor:
        return f"one token in a hundred takes {ms(tail)} where {ms(floor)} would do."
    if ttft > TAIL * first:
        return f"one first token in a hundred takes {ms(ttft)}, the usual one {ms(first)}."
    return ""


def _too_little(evidence: Evidence, says: str) -> str:
    """What is missing for a judgement; an engine that nobody uses is idle, and that is said."""
    value = evidence.value
    running, done = _running(evidence), value(v.REQUESTS_DONE, 0.0)
    timed = any(evidence.all(q) for q in (v.TTFT, v.QUEUE_TIME, v.TPOT))
    if not running and not done:
        return f"the service is idle ({says}): nothing here tells how it serves."
    if evidence.all(v.RUNNING) and not any(evidence.all(q) for q in (v.WAITING, v.QUEUE_TIME)):
        return f"{says}; how many wait, or how long, is not on this page."
    if done >= SERVED and timed:
        return ""
    if running < LOADED or (done and not timed and not value(v.SAMPLES, 0.0) > 1):
        if done >= SERVED:
            return f"{says}; {NO_PARTS}."
        if _even(evidence):
            return ""
        return f"the engine was hardly loaded ({says}): nothing here tells how it behaves under load."
    if not timed and not value(v.SAMPLES, 0.0) > 1 and not any(evidence.all(q) for q in (v.KV_MAX, v.KV_MEDIAN)):
        return f"{says}; {NO_PARTS}."  # one moment without a time and without the cache
    return ""


def _running(evidence: Evidence) -> float:
    return max(evidence.value(v.RUNNING, 0.0), evidence.value(v.RUNNING_MAX, 0.0))


def _loaded(evidence: Evidence) -> bool:
    return _running(evidence) >= LOADED or evidence.value(v.REQUESTS_DONE, 0.0) >= SERVED


def _even(evidence: Evidence) -> bool:
    """Whether one request after the other took the same, so that a few of them say how it serves alone."""
    if evidence.value(v.REQUESTS_DONE, FEW) < FEW:
        return False
    known = [
        (evidence.value(middle), evidence.value(tail))
        for middle, tail in TIMES
        if evidence.all(middle) and evidence.all(tail)
    ]
    return bool(known) and all(tail <= TAIL * middle for middle, tail in known)


def _errors(evidence: Evidence) -> str:
    """Errors between signs of serving: what was refused, while the engine went on."""
    found: list[Fact] = evidence.all(hang.RANK_ERROR)
    if not found:
        return ""
    text = " ".join(str(found[0].value).split())
    return f"; {len(found)} errors on the way, and it served on, the first: {text[:160]} ({found[0].source.where})"
