"""The answer: proved findings, else recognised causes, else a question; one order, one table, one state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stallwise.doctor.advice import advised
from stallwise.doctor.asking import captures_of, completing, separating
from stallwise.doctor.prove import Proved
from stallwise.doctor.rank import SURE_ENOUGH
from stallwise.doctor.recognise import Ranking, recognise
from stallwise.doctor.recognise.model import SOMETHING_ELSE
from stallwise.doctor.symptoms import Complaint
from stallwise.doctor.verdict import LOUD, SAID_ALOUD, Judgement, judge
from stallwise.evidence.catalog import stated
from stallwise.evidence.event import Role
from stallwise.evidence.evidence import Evidence
from stallwise.findings.diagnosis import Hypothesis, NextStep, State
from stallwise.findings.finding import Finding, Reason
from stallwise.findings.rule import Rule

HEALTHY = "none"  # the cause of a run that nothing ails
WORTH_A_LOOK = 0.1  # causes below this are listed, not argued
MOST_SURE = 0.97


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said of a run, before it is put into words."""

    verdict: Judgement
    ranked: tuple[str, ...]
    findings: tuple[Finding, ...]
    hypotheses: tuple[Hypothesis, ...]
    in_set: tuple[str, ...]  # the 90% set; empty where something is proved
    next: tuple[NextStep, ...]


def answer(
    evidence: Evidence,
    rules: tuple[Rule, ...],
    proved: Proved,
    complaints: Sequence[Complaint],
    contradictions: Sequence[Reason],
) -> Answer:
    """Proof first, recognition second, question third."""
    aloud = complained(evidence, complaints)
    ranking = None
    if not proved.answers:
        ranking = recognise(evidence, [c.symptom for c in complaints], proved.findings, rules, aloud=aloud)
    findings = proved.findings
    if ranking is not None:
        findings = _recognised(ranking, proved, evidence, rules, complaints, aloud=aloud)
    verdict = judge(
        evidence, findings, proved.ledger, complained=_said(proved, complaints), contradictions=contradictions
    )
    hypotheses = _table(findings, ranking)
    ranked = tuple(dict.fromkeys((*(f.cause for f in findings), *_others(hypotheses))))
    if verdict.state is State.HEALTHY:
        findings = proved.findings
        ranked = (HEALTHY, *(c for c in dict.fromkeys(f.cause for f in findings) if c != HEALTHY))
        hypotheses = _cleared(_table(findings, None), verdict.confidence)
    asks: tuple[NextStep, ...] = ()
    if verdict.state is not State.HEALTHY:
        asks = captures_of(proved.findings, proved.unknown, evidence)
        if proved.ledger is None or complaints:  # little is measured: what separates the causes tells most
            asks = separating(hypotheses, rules, evidence, findings) or asks
    if verdict.state is State.UNCLEAR:
        asks = completing(verdict.proofs, asks)
    in_set = ranking.in_set if ranking is not None and verdict.state is not State.HEALTHY else ()
    return Answer(verdict, ranked, findings, hypotheses, in_set, asks)


def complained(evidence: Evidence, complaints: Sequence[Complaint]) -> bool:
    """A person complains in words, asks about a run, or tells of one whose numbers fell; a program by an error it prints."""
    alone = len(evidence.inputs) == 1  # beside other files a text's words are not those of whoever asks
    return (
        any(c.by_person for c in complaints)
        or bool(evidence.all(stated.SYMPTOM))
        or (alone and bool(evidence.all(stated.ASKED) or (complaints and evidence.all(stated.TOLD))))
        or any(e.level in LOUD and e.role is Role.ROOT for e in evidence.events)
    )


def _said(proved: Proved, complaints: Sequence[Complaint]) -> bool:
    """What a log hints at is a complaint only where no trace accounts for every second; what a person says always is."""
    return bool(complaints) if proved.ledger is None else any(c.by_person for c in complaints)


def _recognised(
    ranking: Ranking,
    proved: Proved,
    evidence: Evidence,
    rules: tuple[Rule, ...],
    complaints: Sequence[Complaint],
    *,
    aloud: bool,
) -> tuple[Finding, ...]:
    """Findings of the likeliest causes, as sure as the ranking says; what a prover offers beside them stays an offer."""
    by_cause = {r.cause: r for r in rules}
    own: dict[str, Finding] = {}
    for finding in proved.findings:
        if not finding.optional:
            own.setdefault(finding.cause, finding)
    found = []
    for hypothesis in ranking.hypotheses:
        if hypothesis.cause not in by_cause:
            continue
        sure = hypothesis.probability if aloud else min(hypothesis.probability, JUST_UNSURE)
        if hypothesis.cause in own:
            found.append(replace(own.pop(hypothesis.cause), confidence=sure))
        elif hypothesis.probability >= WORTH_A_LOOK:
            rule = by_cause[hypothesis.cause]
            finding = advised(rule, replace(hypothesis, probability=sure), evidence, complaints)
            found.append(replace(finding, recognised=True))
    offers = [f for f in proved.findings if f.optional]
    first = [f for f in offers if f.confidence >= SURE_ENOUGH] if not any(f.confidence >= SAID_ALOUD for f in found) else []
    return (*first, *found, *own.values(), *(f for f in offers if f not in first))


JUST_UNSURE = SAID_ALOUD - 0.01  # nobody complains: words alone make no verdict


def _table(findings: Sequence[Finding], ranking: Ranking | None) -> tuple[Hypothesis, ...]:
    """One row a cause: what a prover saw with its own probability, since several may be there at once, then the ranking."""
    if ranking is not None:
        return ranking.hypotheses
    rows: dict[str, Hypothesis] = {}
    for f in findings:
        if not f.optional:
            sure = min(f.confidence, MOST_SURE)
            rows.setdefault(f.cause, Hypothesis(f.cause, sure, f.because, f.against, found=True))
    left = 1.0 - max((h.probability for h in rows.values()), default=0.0)
    return (*rows.values(), Hypothesis(SOMETHING_ELSE, left)) if rows else ()


def _others(hypotheses: Sequence[Hypothesis]) -> list[str]:
    return [h.cause for h in hypotheses if h.cause != SOMETHING_ELSE]


def _cleared(hypotheses: Sequence[Hypothesis], sure: float) -> tuple[Hypothesis, ...]:
    """The table of a proven run: "none" holds what the proof is sure of, the others share the rest."""
    rest = [h for h in hypotheses if h.cause not in (HEALTHY, SOMETHING_ELSE)]
    total = sum(h.probability for h in rest)
    scale = min(1.0, (1.0 - sure) / total) if total else 0.0
    rest = [replace(h, probability=h.probability * scale) for h in rest]
    left = max(0.0, 1.0 - sure - sum(h.probability for h in rest))
    return (Hypothesis(HEALTHY, sure), *rest, Hypothesis(SOMETHING_ELSE, left))
