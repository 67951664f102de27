"""The state of a serving engine in a sentence: who runs and waits, how full the cache is, what requests take."""

from __future__ import annotations

import re

from stallwise.doctor.findings.step_facts import percent
from stallwise.evidence.catalog import serving as v
from stallwise.evidence.event import Event
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source
from stallwise.evidence.quantity import Quantity

REFUSED = "request-refused"
_LINE = re.compile(r"(\d+)\s*$")


def line_of(source: Source) -> int:
    """The last line that a source names; 0 where it names none."""
    found = _LINE.search(source.where)
    return int(found[1]) if found else 0


def refusals(evidence: Evidence) -> str:
    """How many requests were longer than the engine takes: a matter between client and settings, and no fault of the engine."""
    refused = [e for e in evidence.events if e.kind == REFUSED]
    if not refused:
        return ""
    counts: dict[str, int] = {}  # the first event of a file carries how often it came
    for event in refused:
        counts.setdefault(event.source.file, event.times)
    times, asked, limit = sum(counts.values()), _largest(refused, "asked"), _largest(refused, "limit")
    sizes = f": up to {asked:,.0f} tokens" if asked else ""
    sizes += f" where {limit:,.0f} fit" if limit else ""
    return f"{times:,} requests were refused as too long{sizes} ({refused[0].source.where})"


def _largest(events: list[Event], slot: str) -> float:
    return max((float(e.slots[slot]) for e in events if slot in e.slots), default=0.0)


def described(evidence: Evidence) -> str:
    """Everything that is known, in the order of a request."""
    value = evidence.value
    parts = [_load(evidence), _cache(evidence)]
    parts += [
        _counted(evidence, v.PREEMPTED, "preempted"),
        _counted(evidence, v.REQUESTS_DONE, "served"),
        _counted(evidence, v.FAILED, "failed"),
        refusals(evidence),
        _rate(evidence),
        f"prefix hits {percent(value(v.HIT_SHARE))}" if evidence.get(v.HIT_SHARE) else "",
        _time(evidence, v.TTFT, v.TTFT_MEDIAN, v.TTFT_TAIL, "first token in"),
        _time(evidence, v.TPOT, v.TPOT_MEDIAN, v.TPOT_TAIL, "later tokens each in"),
        _time(evidence, v.REQUEST_TIME, v.REQUEST_MEDIAN, v.REQUEST_TAIL, "a request in"),
        _prompts(evidence),
        _part(evidence, v.QUEUE_TIME, "in the queue"),
        _part(evidence, v.DECODE_TIME, "in the model"),
        f"mean batch {value(v.BATCH_MEAN):.3g}" if evidence.get(v.BATCH_MEAN) else "",
        f"GPU {percent(value(v.GPU_BUSY))} busy" if evidence.get(v.GPU_BUSY) else "",
        _counted(evidence, v.SAMPLES, "samples") if value(v.SAMPLES, 0.0) > 1 else "",
    ]
    return ", ".join(part for part in parts if part)


def _load(evidence: Evidence) -> str:
    running, most, waiting = (evidence.value(q) for q in (v.RUNNING, v.RUNNING_MAX, v.WAITING))
    running = 0.0 if running != running and most == 0 else running
    parts = [
        f"{running:.0f} running" + (f" (at most {most:.0f})" if most > running else "") if running == running else ""
    ]
    parts.append(f"{waiting:.0f} waiting in the queue" if waiting == waiting else "")
    return ", ".join(part for part in parts if part)


def _cache(evidence: Evidence) -> str:
    middle, most = evidence.value(v.KV_MEDIAN), evidence.value(v.KV_MAX)
    if most != most:
        return ""
    return f"KV {percent(middle if middle == middle else most)} full" + (
        f" (at most {percent(most)})" if most > middle else ""
    )


def _counted(evidence: Evidence, quantity: Quantity, word: str) -> str:
    fact = evidence.get(quantity)
    return f"{fact.number:,.0f} {word}" if fact is not None else ""


def _rate(evidence: Evidence) -> str:
    middle, most = evidence.value(v.GENERATION_RATE), evidence.value(v.GENERATION_MAX)
    if not middle > 0:
        each = evidence.value(v.PER_REQUEST_RATE)
        return f"{_short(each)} tokens/s each" if each > 0 else ""
    return f"{_short(middle)} tokens/s" + (f" (at most {_short(most)})" if most > 1.05 * middle else "")


def _short(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _prompts(evidence: Evidence) -> str:
    if evidence.get(v.PREFILL_TIME) is None:
        return ""
    rate = evidence.value(v.PREFILL_RATE)
    return f"its prompt in {short_time(evidence.value(v.PREFILL_TIME))}" + (
        f" ({_short(rate)} tokens/s)" if rate > 0 else ""
    )


def _part(evidence: Evidence, quantity: Quantity, words: str) -> str:
    took, whole = evidence.value(quantity), evidence.value(v.REQUEST_TIME)
    share = f" ({percent(took / whole)})" if whole > 0 else ""
    return f"{short_time(took)} of it{share} {words}" if took == took else ""


def short_time(seconds: float) -> str:
    """Three digits, none of them for show."""
    for unit, size, least in (("s", 1.0, 0.5), ("ms", 1e-3, 1e-3)):
        if abs(seconds) >= least:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def _time(evidence: Evidence, mean: Quantity, middle: Quantity, tail: Quantity, words: str) -> str:
    if evidence.get(mean) is None:
        return ""
    parts = [f"median {short_time(evidence.value(middle))}" if evidence.get(middle) else ""]
    parts.append(f"99% within {short_time(evidence.value(tail))}" if evidence.get(tail) else "")
    beside = ", ".join(part for part in parts if part)
    return f"{words} {short_time(evidence.value(mean))}" + (f" ({beside})" if beside else "")
