"""A load test is in line when what was asked was served: no failures, the offered rate reached, tails near their medians.

Refuted by: failed requests, a rate below the one that was offered, the slowest hundredth of first and later tokens.
"""

from __future__ import annotations

from stallwise.causes.health._served import short_time
from stallwise.doctor.findings.finding import Reason
from stallwise.doctor.findings.proof import Proof
from stallwise.evidence.capture import SERVE_BENCH, SERVE_METRICS
from stallwise.evidence.catalog import serving as v
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.quantity import Quantity

REACHED = 0.95  # of the offered rate
FAILED = 0.01  # of the requests
TAIL = 5.0  # times the median that the slowest hundredth may take
LATE_S = 2.0  # a first token later than this is a complaint by itself
SERVED = (v.ACHIEVED_RATE, v.OUTPUT_RATE, v.TTFT)


def load_test(evidence: Evidence) -> Proof | None:
    """One result; several of a sweep are compared elsewhere."""
    runs = {f.scope.run for f in evidence.all(v.ACHIEVED_RATE) if f.scope.run}
    if len(runs) != 1 or any(evidence.all(q) for q in (v.SAMPLES, v.RUNNING)):
        return None
    served = [f for q in SERVED for f in evidence.all(q)]
    out = _out_of_line(evidence)
    says = _described(evidence)
    return Proof(
        of="load test",
        says=says + ("" if out else "; what more load does is not in this file"),
        because=(Reason(says, tuple(dict.fromkeys(f.source for f in served))),),
        confidence=0.8,
        lacks=f"{says}: {out}" if out else "",
        objects=bool(out),
        covers_run=False,
        next=(SERVE_METRICS, SERVE_BENCH) if out else (),
    )


def _out_of_line(evidence: Evidence) -> str:
    value = evidence.value
    done, failed = value(v.REQUESTS_DONE), value(v.FAILED, 0.0)
    offered, reached = value(v.OFFERED_RATE), value(v.ACHIEVED_RATE)
    if failed > FAILED * (failed + (done if done == done else 0.0)):
        return f"{failed:.0f} requests failed."
    if offered < float("inf") and reached < REACHED * offered:
        return f"{reached:.3g} of {offered:.3g} requests a second are served."
    if value(v.TTFT) > LATE_S:
        return f"the first token takes {short_time(value(v.TTFT))}."
    for name, middle, tail in (("first token", v.TTFT, v.TTFT_TAIL), ("later token", v.TPOT, v.TPOT_TAIL)):
        if value(tail) > TAIL * value(middle):
            return f"the slowest hundredth waits {short_time(value(tail))} for a {name}, the median {short_time(value(middle))}."
    return ""


def _described(evidence: Evidence) -> str:
    value = evidence.value
    done, failed, offered = value(v.REQUESTS_DONE), value(v.FAILED), value(v.OFFERED_RATE)
    parts = [
        f"{done:,.0f} requests served" if done == done else "",
        f"{failed:,.0f} failed" if failed == failed else "",
    ]
    asked = f" of {offered:.4g} asked" if offered < float("inf") else ""
    parts.append(f"{value(v.ACHIEVED_RATE):.4g} a second{asked}")
    parts.append(f"{value(v.OUTPUT_RATE):,.0f} tokens/s" if evidence.get(v.OUTPUT_RATE) else "")
    parts.append(f"at most {value(v.CONCURRENCY):.0f} at once" if evidence.get(v.CONCURRENCY) else "")
    parts.append(_time(evidence, "first token", v.TTFT, v.TTFT_MEAN, v.TTFT_TAIL))
    parts.append(_time(evidence, "later tokens", v.TPOT, v.TPOT_MEAN, v.TPOT_TAIL))
    parts.append(_time(evidence, "a request", v.REQUEST_TIME, v.REQUEST_TIME, v.REQUEST_TAIL))
    return ", ".join(part for part in parts if part)


def _time(evidence: Evidence, words: str, middle: Quantity, mean: Quantity, tail: Quantity) -> str:
    if evidence.get(middle) is None:
        return ""
    beside = [f"mean {short_time(evidence.value(mean))}" if mean is not middle and evidence.get(mean) else ""]
    beside.append(f"99% within {short_time(evidence.value(tail))}" if evidence.get(tail) else "")
    inside = ", ".join(part for part in beside if part)
    return f"{words} {short_time(evidence.value(middle))}" + (f" ({inside})" if inside else "")
