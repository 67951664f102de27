"""A serving engine is in line when, under load, nobody waits long, nobody is thrown out and the cache has room.

Whether tokens come as fast as they could is known only where a floor for them is. One that hardly runs shows nothing of load.
"""

from __future__ import annotations

from stallwise.evidence.capture import SERVE_BENCH, SERVE_METRICS
from stallwise.evidence.catalog import hang
from stallwise.evidence.catalog import serving as v
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.findings.finding import Reason
from stallwise.findings.proof import Limit, Proof
from stallwise.findings.step_facts import ms, percent
from stallwise.rules.health._served import described, line_of
from stallwise.rules.health.decode_trace import BYTES_LEVERS

NEAR_FLOOR = 1.5  # times what one decode iteration should take: host time, mixed prefill and sampling lie below
ROOM = 0.90  # of the KV cache: above it the next long request evicts another
LOADED = 5.0  # requests at once: an engine with a few shows nothing about load
SERVED = 30.0  # requests: fewer show no spread
QUEUED = 0.2  # of a request's time in the queue
SEEN = (v.RUNNING, v.RUNNING_MAX, v.WAITING, v.REQUESTS_DONE, v.SAMPLES)
NO_FLOOR = "whether tokens come as fast as they could is not in this file"
NO_PARTS = "what a request's time consists of is not on this page (no time to first token, no time in the queue)"


def engine_state(evidence: Evidence) -> Proof | None:
    """Queue, preemptions, KV and the times of requests."""
    told = [f for q in SEEN for f in evidence.all(q) if f.scope.run != "before"]
    if not told or evidence.all(v.OFFERED_RATE):
        return None
    says = described(evidence)
    seen, floor = evidence.value(v.DECODE_SEEN), evidence.value(v.DECODE_EXPECTED)
    near = f"a token in {ms(seen)} where memory allows {ms(floor)}" if seen == seen and floor == floor else ""
    out = _out_of_line(evidence, seen, floor)
    lacks = out or _too_little(evidence, says)
    failures = _errors(evidence)
    sources = tuple(dict.fromkeys(f.source for f in told))
    return Proof(
        of="serving engine",
        says=says + (f"; {near}" if near else "" if lacks else f"; {NO_FLOOR}") + failures,
        because=(Reason(says, sources),),
        confidence=0.85 if near else 0.8,
        limit=None
        if lacks or not near
        else Limit(
            "memory bandwidth",
            min(1.0, floor / seen),
            f"{near}: {percent(min(1.0, floor / seen))} of the memory's rate; to go faster, move fewer bytes a token",
            BYTES_LEVERS,
        ),
        lacks=lacks,
        objects=bool(out),
        speaks_for_run=bool(near),
        next=(SERVE_METRICS, SERVE_BENCH) if lacks else (),
    )


def _out_of_line(evidence: Evidence, seen: float, floor: float) -> str:
    value = evidence.value
    waiting, thrown, kv = value(v.WAITING, 0.0), value(v.PREEMPTED, 0.0), value(v.KV_MEDIAN, 0.0)
    queue, whole = value(v.QUEUE_TIME), value(v.REQUEST_TIME)
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
    if seen > NEAR_FLOOR * floor:
        return f"a token takes {ms(seen)} where {ms(floor)} would do."
    last = max((line_of(f.source) for q in (v.SAMPLES,) for f in evidence.all(q)), default=0)
    if last and any(line_of(f.source) > last for f in evidence.all(hang.RANK_ERROR)):
        return "an error comes after the last sign of serving."
    return ""


def _too_little(evidence: Evidence, says: str) -> str:
    """What is missing for a judgement; an engine that nobody uses is idle, and that is said."""
    value = evidence.value
    running, done = max(value(v.RUNNING, 0.0), value(v.RUNNING_MAX, 0.0)), value(v.REQUESTS_DONE, 0.0)
    timed = any(evidence.all(q) for q in (v.TTFT, v.QUEUE_TIME, v.TPOT))
    if not running and not done:
        return f"the service is idle ({says}): nothing here tells how it serves."
    if done >= SERVED and timed:
        return ""
    if running < LOADED or (done and not timed and not value(v.SAMPLES, 0.0) > 1):
        if done >= SERVED:
            return f"{says}; {NO_PARTS}."
        return f"the engine was hardly loaded ({says}): nothing here tells how it behaves under load."
    return ""


def _errors(evidence: Evidence) -> str:
    """Errors between signs of serving: what was refused, while the engine went on."""
    found: list[Fact] = evidence.all(hang.RANK_ERROR)
    if not found:
        return ""
    text = " ".join(str(found[0].value).split())
    return f"; {len(found)} errors on the way, and it served on, the first: {text[:160]} ({found[0].source.where})"
