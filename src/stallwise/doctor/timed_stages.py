"""Time that somebody timed speaks for itself: the cause that owns a large part of the step is a finding.

A trace has rules that look closer, and where they stay silent the part is unexplained. Stage timers, a log's columns and
numbers in a mail say only how long a part takes; that is enough to name its owner, as surely as recorded runs bear it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from stallwise.doctor.advice import advised
from stallwise.doctor.findings.diagnosis import Hypothesis
from stallwise.doctor.findings.finding import Finding, Gain, Reason
from stallwise.doctor.findings.rule import Owned, Rule
from stallwise.doctor.findings.step_facts import ms, percent
from stallwise.doctor.recognise.ranking import refuted
from stallwise.doctor.verdict import UNEXPLAINED_SHARE
from stallwise.evidence.catalog import change, run
from stallwise.evidence.catalog import step as traced
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.ledger import Ledger

LARGEST, LARGEST_SURE = (
    0.4,
    0.7,
)  # of the step: no other part can be much larger, whatever few known cases say of its owner
LEAST_WON = 0.5  # of a timed part: what took it away may have been the limit of something else as well


def stage_owners(
    evidence: Evidence, rules: Iterable[Rule], found: Sequence[Finding], ledger: Ledger | None
) -> list[Finding]:
    """A finding for every owner of a large part, where no trace was there to look closer."""
    if evidence.timelines:
        return []
    claimed = {f.category for f in found if f.category is not None}
    judged = {f.cause for f in found} | {cause for f in found if f.is_verdict for cause in f.explains}
    step_s = _step_s(evidence, ledger)
    owned_findings = []
    for rule in rules:
        if rule.owns is None or rule.cause in judged or rule.owns.category in claimed:
            continue
        if refuted(rule, evidence):  # a wait for work that is queued anyway is no loss
            continue
        part = _part(rule.owns, evidence, ledger, step_s)
        if part is not None and part[0] >= UNEXPLAINED_SHARE:
            owned_findings.append(_finding(rule, rule.owns, part, _mean_step_s(evidence, step_s), evidence))
    return owned_findings


def _step_s(evidence: Evidence, ledger: Ledger | None) -> float:
    """The whole that parts are parts of; NaN where nobody told it."""
    for quantity in (traced.STEP_TIME, run.STEP_TIME):
        step_s = evidence.value(quantity)
        if step_s > 0:
            return step_s
    return ledger.whole_s if ledger is not None and ledger.unit == "step" else float("nan")


def _mean_step_s(evidence: Evidence, step_s: float) -> float:
    """Shares are of all the time, so seconds a step are of the mean one: a usual step may hold none of it."""
    series = next((x for q in (traced.STEP_TIME, run.STEP_TIME) for x in evidence.series(q)), None)
    return float(series.values.mean()) if series is not None and len(series.values) else step_s


def _part(
    owned: Owned, evidence: Evidence, ledger: Ledger | None, step_s: float
) -> tuple[float, str, tuple[Source, ...]] | None:
    """The largest share that anybody tells of it, in which words, and where."""
    timed: list[tuple[float, str, tuple[Source, ...]]] = []
    names = {q.name: q.meaning for q in owned.parts}
    for quantity in owned.parts:
        fact = evidence.get(quantity, run=None)
        if fact is not None and _number(fact) and step_s > 0 and fact.number <= step_s:
            timed.append((fact.number / step_s, quantity.meaning, (fact.source,)))
    for quantity in owned.shares:
        fact = evidence.get(quantity, run=None)
        if fact is not None and _number(fact) and fact.number <= 1.0:
            elsewhere = sum(evidence.value(q, 0.0) for q in owned.bursts)
            timed.append((max(fact.number - elsewhere, 0.0), quantity.meaning, (fact.source,)))
    for fact in evidence.all(change.PART_SHARE):
        if fact.scope.layer in names and fact.number <= 1.0:
            timed.append((fact.number, names[fact.scope.layer], (fact.source,)))
    if not timed and owned.whole_category and ledger is not None and ledger.unit == "step":
        timed.append((ledger.share(owned.category), owned.parts[0].meaning, (ledger.source,)))
    return max(timed, default=None, key=lambda t: t[0])


def _number(fact: Fact) -> bool:
    return not isinstance(fact.value, str) and fact.number == fact.number


def _finding(
    rule: Rule, owned: Owned, part: tuple[float, str, tuple[Source, ...]], step_s: float, evidence: Evidence
) -> Finding:
    share, meaning, sources = part
    amount = f"{ms(share * step_s)} of every {ms(step_s)}" if step_s > 0 else f"{percent(share)} of the step"
    borne_out = (Reason(f"in {owned.right} of {owned.of} known cases with so much of it, this was the cause"),)
    sure = max(owned.confidence, LARGEST_SURE) if share >= LARGEST else owned.confidence
    advice = advised(rule, Hypothesis(rule.cause, sure), evidence)
    gain = None
    if step_s > 0:
        gain = Gain(LEAST_WON * share * step_s, share * step_s, "the timed part; half where something else binds next")
    return replace(
        advice,
        headline=f"{meaning[:1].upper()}{meaning[1:]}: {amount}.",
        because=(
            Reason(f"{meaning}: {percent(share)} of the step", sources),
            *(borne_out if owned.of else ()),
            *advice.because,
        ),
        category=owned.category,
        gain=gain,
    )
