"""The state of a serving engine in a sentence: who runs and waits, how full the cache is, what requests take."""

from __future__ import annotations

import re

from stallwise.doctor.findings.step_facts import percent
from stallwise.evidence.catalog import serving as v
from stallwise.evidence.event import Event
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.quantity import Quantity

REFUSED = "request-refused"
STATE = (v.RUNNING, v.RUNNING_MAX, v.WAITING, v.SAMPLES)  # of an engine, as it tells it itself
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


def recorded(evidence: Evidence, fact: Fact) -> bool:
    """Whether a program wrote it down, and nobody said it in a sentence."""
    return not fact.stated or fact.source.file in evidence.records


def is_engine(evidence: Evidence) -> bool:
    """Whether an engine's own state is there, and not only what its clients saw."""
    state = [f for q in STATE for f in evidence.all(q) if f.scope.run != "before" and recorded(evidence, f)]
    rated = any(evidence.all(q) for q in (v.ACHIEVED_RATE, v.OFFERED_RATE))
    return bool(state) or (bool(evidence.all(v.REQUESTS_DONE)) and not rated)


def described(evidence: Evidence) -> str:
    """Everything that is known, in the order of a request."""
    value = evidence.value
    parts = [_load(evidence), _offered(evidence), _cache(evidence)]
    parts += [
        _counted(evidence, v.PREEMPTED, "preempted"),
        _counted(evidence, v.REQUESTS_DONE, "served"),
        _counted(evidence, v.FAILED, "failed"),
        refusals(evidence),
        _rate(evidence),
        f"prefix hits {percent(value(v.HIT_SHARE))}" if evidence.get(v.HIT_SHARE) else "",
        _time(evidence, (v.TTFT, v.TTFT_MEDIAN, v.TTFT_MEAN, v.TTFT_TAIL, v.TARGET_TTFT), "first token in"),
        _time(evidence, (v.TPOT, v.TPOT_MEDIAN, v.TPOT_MEAN, v.TPOT_TAIL, v.TARGET_TPOT), "later tokens each in"),
        _time(evidence, (v.REQUEST_TIME, v.REQUEST_MEDIAN, None, v.REQUEST_TAIL, None), "a request in"),
        _prompts(evidence),
        _part(evidence, v.QUEUE_TIME if evidence.get(v.QUEUE_TIME) else v.QUEUE_TAIL, "in the queue"),
        _part(evidence, v.DECODE_TIME, "in the model"),
        f"mean batch {value(v.BATCH_MEAN):.3g}" if evidence.get(v.BATCH_MEAN) else "",
        f"GPU {percent(value(v.GPU_BUSY))} busy" if evidence.get(v.GPU_BUSY) else "",
        _counted(evidence, v.SAMPLES, "samples") if value(v.SAMPLES, 0.0) > 1 else "",
    ]
    return ", ".join(part for part in parts if part)


def _offered(evidence: Evidence) -> str:
    reached, offered, users, made = (
        evidence.value(q) for q in (v.ACHIEVED_RATE, v.OFFERED_RATE, v.CONCURRENCY, v.OUTPUT_RATE)
    )
    asked = f" of {offered:.4g} asked" if offered < float("inf") and offered != reached else ""
    parts = [f"{reached:.4g} a second{asked}" if reached == reached else ""]
    parts.append(f"{made:,.0f} tokens/s" if made == made else "")
    parts.append(f"at most {users:.0f} at once" if users == users else "")
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


def _time(evidence: Evidence, of: tuple[Quantity | None, ...], words: str) -> str:
    """The value, and its other statistics beside it."""
    value, *others = (evidence.value(q) if q is not None else float("nan") for q in of)
    if value != value:
        return ""
    titles = ("median {}", "mean {}", "tail {}", "{} wanted")
    beside = ", ".join(t.format(short_time(x)) for t, x in zip(titles, others, strict=True) if x == x)
    return f"{words} {short_time(value)}" + (f" ({beside})" if beside else "")
