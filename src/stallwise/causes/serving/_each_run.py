"""Several logs may be one incident: each run is judged by itself, and the surest verdict speaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from stallwise.causes.serving._story import with_story
from stallwise.doctor.findings.finding import Finding, Reason
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Scope
from stallwise.evidence.quantity import Quantity


def runs(evidence: Evidence) -> Iterator[Evidence]:
    """One view per log that holds samples; the whole where there is only one."""
    names = list(dict.fromkeys(f.scope.run for f in evidence.all(serving.SAMPLES) if f.scope.run))
    if not names:
        yield evidence
    for name in names:
        yield evidence.within(Scope(run=name))


def surest(evidence: Evidence, judge: Callable[[Evidence], Finding | None]) -> Finding | None:
    """The most confident of the runs' verdicts, with the run it speaks of."""
    found = [(view, f) for view in runs(evidence) if (f := judge(view)) is not None]
    if not found:
        return None
    view, finding = max(found, key=lambda x: x[1].confidence)
    fact, phase = view.get(serving.SAMPLES), view.get(serving.PHASE)
    if phase is not None:
        finding = replace(finding, because=(*finding.because, Reason.of(f"judged where it hurts: {phase}", phase)))
    return with_story(replace(finding, scope=fact.scope if fact else finding.scope), evidence)


def facts(evidence: Evidence, *quantities: Quantity) -> tuple[Fact, ...]:
    """Those that are known, to point at."""
    return tuple(f for q in quantities if (f := evidence.get(q)) is not None)


def fitting(evidence: Evidence) -> float:
    """How many requests of the length seen the KV cache holds; NaN where unknown."""
    tokens = evidence.value(serving.KV_TOKENS)
    length = evidence.value(serving.PROMPT_TOKENS) + evidence.value(serving.OUTPUT_TOKENS, 0.0)
    if tokens > 0 and length > 0:
        return tokens / length
    most, kv = evidence.value(serving.RUNNING_MAX), evidence.value(serving.KV_MAX)
    return most / kv if most > 0 and kv > 0 else float("nan")
