"""A load test, a sweep or a summary of requests is in line when what was asked was served: no failures, the offered rate reached, tails
near their medians or within the target, and waits that more load hardly lengthened.

Refuted by: failed requests, a rate below the one that was offered, the slowest hundredth of first and later tokens, a queue, preemptions,
a load from which the rate no longer rises.
"""

from __future__ import annotations

import math

from stallwise.causes.health._served import described, is_engine, recorded, short_time
from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.proof import Proof
from stallwise.evidence.capture import SERVE_BENCH, SERVE_METRICS
from stallwise.evidence.catalog import serving as v
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Scope

REACHED = 0.95  # of the offered rate
FAILED = 0.01  # of the requests
TAIL = 5.0  # times the median that the slowest hundredth may take
LATE_S = 2.0  # a first token later than this is a complaint by itself
QUEUED = 0.2  # of a request's time
OUTGREW, LONGER = 2.0, 4.0  # times what the load grew, and times by itself, that a first token may come later
ROOM = 0.90  # of the KV cache
SERVED = (v.ACHIEVED_RATE, v.OUTPUT_RATE, v.QUEUE_TAIL, v.QUEUE_TIME, v.TTFT, v.REQUEST_TIME)
LOADS = (v.OFFERED_RATE, v.CONCURRENCY, v.ACHIEVED_RATE)


def load_test(evidence: Evidence) -> Proof | None:
    """One result, or the heaviest load of a sweep."""
    served = [f for q in SERVED for f in evidence.all(q) if recorded(evidence, f)]
    rated = any(evidence.all(q) for q in SERVED[:4])
    if not served or not rated or is_engine(evidence):
        return None
    runs = {f.scope.run for f in served if f.scope.run and f.scope.run != "before"}
    swept = evidence.get(v.LOAD_GROWTH)
    if len(runs) > 1 and swept is None:
        return None  # several runs of one load are compared elsewhere
    view = evidence.within(Scope(run=_heaviest(evidence))) if runs else evidence
    out = _out_of_line(view) or (_knee(evidence) if swept else "")
    says = (_grown(evidence) if swept else "") + described(view)
    return Proof(
        of="load test" if any(evidence.all(q) for q in LOADS) else "requests served",
        says=says + ("" if out else "; what more load does is not in this file"),
        because=(Reason(says, tuple(dict.fromkeys(f.source for f in served))),),
        confidence=0.8,
        lacks=f"{says}: {out}" if out else "",
        objects=bool(out),
        covers_run=False,
        next=(SERVE_METRICS, SERVE_BENCH) if out else (),
    )


def _heaviest(evidence: Evidence) -> str | None:
    for quantity in LOADS:
        loads = [(f.number, f.scope.run) for f in evidence.all(quantity) if f.scope.run and math.isfinite(f.number)]
        if loads:
            return max(loads)[1]
    return None


def _grown(evidence: Evidence) -> str:
    load, rate, first, later = (evidence.value(q) for q in (v.LOAD_GROWTH, v.RATE_GROWTH, v.TTFT_GROWTH, v.TPOT_GROWTH))
    parts = [f"{load:.3g}x the load gave {rate:.3g}x the rate" if rate == rate else f"under {load:.3g}x the load"]
    parts.append(f"waits {first:.2g}x as long" if first == first else "")
    parts.append(f"later tokens {later:.2g}x" if later == later else "")
    return ", ".join(part for part in parts if part) + "; at the most load "


def _knee(evidence: Evidence) -> str:
    load, first = evidence.value(v.LOAD_GROWTH), evidence.value(v.TTFT_GROWTH)
    if plateau := evidence.get(v.PLATEAU_LOAD):
        return f"from a load of {plateau} on the rate no longer rises."
    return f"waits grew {first:.3g}x with {load:.3g}x the load." if first > max(LONGER, OUTGREW * load) else ""


def _out_of_line(evidence: Evidence) -> str:
    value = evidence.value
    done, failed = value(v.REQUESTS_DONE), value(v.FAILED, 0.0)
    offered, reached = value(v.OFFERED_RATE), value(v.ACHIEVED_RATE)
    if failed > FAILED * (failed + (done if done == done else 0.0)):
        return f"{failed:.0f} requests failed."
    if offered < float("inf") and reached < REACHED * offered:
        return f"{reached:.3g} of {offered:.3g} requests a second are served."
    queue, prefill = max(value(v.QUEUE_TIME, 0.0), value(v.QUEUE_TAIL, 0.0)), value(v.PREFILL_TIME, 0.0)
    first = value(v.TTFT, queue + prefill)
    if first > LATE_S:
        return f"the first token takes {short_time(first)}."
    if value(v.PREEMPTED, 0.0) > 0 or value(v.KV_MAX, 0.0) > ROOM:
        return "the KV cache is full, or requests were thrown out of it."
    whole = value(v.REQUEST_TIME, value(v.TTFT, queue + prefill + value(v.DECODE_TIME, 0.0)))
    if queue > QUEUED * whole:
        return f"a request waits {short_time(queue)} of its {short_time(whole)} in the queue."
    for name, middle, tail, target in (
        ("first token", v.TTFT, v.TTFT_TAIL, v.TARGET_TTFT), ("later token", v.TPOT, v.TPOT_TAIL, v.TARGET_TPOT)
    ):  # fmt: skip
        if value(tail, value(middle)) > value(target):
            return f"the slowest hundredth waits {short_time(value(tail, value(middle)))} for a {name}, {short_time(value(target))} are wanted."
        if not value(target) > 0 and value(tail) > TAIL * value(middle):
            return f"the slowest hundredth waits {short_time(value(tail))} for a {name}, the median {short_time(value(middle))}."
    return ""
