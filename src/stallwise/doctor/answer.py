"""The answer: proved findings, else recognised causes, else a question; one order, one table, one state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stallwise.doctor.advice import advised
from stallwise.doctor.asking import captures_of, completing, separating
from stallwise.doctor.fell_short import fell_short
from stallwise.doctor.findings.diagnosis import SOMETHING_ELSE, Hypothesis, NextStep, State
from stallwise.doctor.findings.finding import EVEN_ODDS, Finding, Reason
from stallwise.doctor.findings.program_end import ending_of, own_error, says_all
from stallwise.doctor.findings.proof import PROGRAM_END
from stallwise.doctor.findings.rule import Rule
from stallwise.doctor.prove import Proved
from stallwise.doctor.recognise import Ranking, reads_healthy, recognise
from stallwise.doctor.stating import INPUT
from stallwise.doctor.symptoms import Complaint
from stallwise.doctor.table import HEALTHY, cleared, led_by, table_of, unasked
from stallwise.doctor.verdict import LOUD, Judgement, judge
from stallwise.evidence.catalog import stated
from stallwise.evidence.event import Role
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import STATED

WORTH_A_LOOK = 0.1  # causes below this are listed, not argued


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said of a run, before it is put into words."""

    verdict: Judgement
    ranked: tuple[str, ...]
    findings: tuple[Finding, ...]
    hypotheses: tuple[Hypothesis, ...]
    in_set: tuple[str, ...]  # the 90% set; empty where something is proved
    next: tuple[NextStep, ...]
    chances: Mapping[str, float]  # of every cause, where no prover answers


def answer(
    evidence: Evidence,
    rules: tuple[Rule, ...],
    proved: Proved,
    complaints: Sequence[Complaint],
    contradictions: Sequence[Reason],
    curve: tuple[float, ...] | None = None,
) -> Answer:
    """Proof first, recognition second, question third; `curve`: how sure recognition may be of what it was told on request."""
    aloud, symptoms = complained(evidence, complaints), [c.symptom for c in complaints]
    complains = _shown(complaints) or curve is not None or fell_short(evidence)
    healthy = bool(evidence.stems) and not complains and reads_healthy(evidence, symptoms)
    proved = proved.doubted() if healthy else proved
    ranking = None
    verdict = _judged(evidence, proved.findings, proved, complaints, contradictions)
    answers = proved.answers or (not evidence.stems and any(f.is_verdict for f in proved.findings))
    if verdict.state is not State.HEALTHY and not answers and _worded(evidence, proved, complaints):
        ranking = recognise(evidence, symptoms, proved.findings, rules, aloud=aloud, healthy=healthy, curve=curve)
        ranking = ranking if aloud and not healthy else unasked(ranking)
        if contradictions:  # words make no verdict of what contradicts itself
            ranking = unasked(ranking, besides={h.cause for h in ranking.hypotheses if not h.by_words_alone})
    findings = proved.findings
    if any(f.is_verdict for f in findings):  # what a run may gain beside its trouble comes after it
        findings = tuple(sorted(findings, key=lambda f: f.optional))
    if ranking is not None:
        findings = _recognised(ranking, proved, evidence, rules, complaints)
        verdict = _judged(evidence, findings, proved, complaints, contradictions)
    hypotheses = table_of(findings, ranking)
    if ranking is not None and findings and findings[0].optional:
        hypotheses = led_by(findings[0], hypotheses)
        table = {h.cause: h.probability for h in hypotheses}
        findings = tuple(f if f.optional else replace(f, confidence=table.get(f.cause, f.confidence)) for f in findings)
    ranked = tuple(dict.fromkeys((*(f.cause for f in findings), *_others(hypotheses))))
    if verdict.state is State.HEALTHY:
        findings = proved.findings
        ranked = (HEALTHY, *(c for c in dict.fromkeys(f.cause for f in findings) if c != HEALTHY))
        hypotheses = cleared(table_of(findings, None), verdict.confidence)
    asks = _asks(
        evidence, rules, proved, verdict, findings, hypotheses, separate=proved.ledger is None or bool(complaints)
    )
    in_set = ranking.in_set if ranking is not None and verdict.state is not State.HEALTHY else ()
    chances = ranking.chances if ranking is not None else {}
    return Answer(verdict, ranked, findings, hypotheses, in_set, asks, chances)


def _judged(
    evidence: Evidence,
    findings: Sequence[Finding],
    proved: Proved,
    complaints: Sequence[Complaint],
    contradictions: Sequence[Reason],
) -> Judgement:
    return judge(
        evidence, findings, proved.ledger, complained=_complained_of(proved, complaints), contradictions=contradictions,
        seen=next((f.headline for f in proved.findings if f.confidence >= EVEN_ODDS and not f.optional), ""),
    )  # fmt: skip


def _asks(
    evidence: Evidence,
    rules: tuple[Rule, ...],
    proved: Proved,
    verdict: Judgement,
    findings: Sequence[Finding],
    hypotheses: Sequence[Hypothesis],
    *,
    separate: bool,
) -> tuple[NextStep, ...]:
    """What to capture next. Where no cause is worth a look, what completes the picture of the file itself comes first."""
    if verdict.state is State.HEALTHY:
        part = not any(p.whole for p in verdict.proofs)  # only the files' own subjects are shown to be well
        return completing([p for p in verdict.proofs if not p.lacks], ()) if part else ()
    asks = captures_of(proved.findings, proved.unknown, evidence)
    if findings and findings[0].last_resort and findings[0].is_verdict and not findings[0].recognised:
        return asks  # how it ended is known: what separates slow runs is not asked for
    if (
        separate
    ):  # little is measured: what separates the causes tells most, but a fault itself says what shows more of it
        own = asks if findings and findings[0].blocking and not findings[0].recognised else ()
        separating_steps = separating(hypotheses, rules, evidence, findings)
        known = {step.capture for step in own}
        asks = (*own, *(step for step in separating_steps if step.capture not in known)) or asks
    if verdict.state is not State.UNCLEAR:
        return asks
    if ends := [p for p in verdict.proofs if p.of == PROGRAM_END]:
        return completing(ends, ())
    asks = completing([p for p in verdict.proofs if p.lacks and not p.covers_run], ()) + asks
    asks = tuple({step.capture: step for step in reversed(asks)}.values())[::-1]
    lacking = [p for p in verdict.proofs if p.lacks]
    suspected = any(h.probability >= WORTH_A_LOOK for h in hypotheses if h.cause != SOMETHING_ELSE)
    return completing(lacking, asks) if suspected else (completing(lacking, ()) or asks)


def _worded(evidence: Evidence, proved: Proved, complaints: Sequence[Complaint]) -> bool:
    """Whether anything but measured values is there: without a word, a message or a prover's doubt nothing can be recognised."""
    ended = own_error(ending_of(evidence)) or says_all(evidence)
    if ended and not proved.findings and not any(c.by_person for c in complaints):
        return False  # the program says itself what ended it, and words around it are its source code
    logs = {t.source.file for t in evidence.table("kernel.log")}
    if evidence.inputs and logs.issuperset(evidence.inputs) and not proved.findings and not complaints:
        return False  # what a kernel prints of disks and services tells nothing of a job
    stated_ = INPUT in evidence.formats  # by somebody, who has a reason to
    faults = any(e.role in (Role.ROOT, Role.CASCADE) for e in evidence.events)  # settings and advice are no trouble
    return bool(evidence.stems or faults or complaints or proved.findings or stated_)


def complained(evidence: Evidence, complaints: Sequence[Complaint]) -> bool:
    """A person complains in words, asks about a run, or tells of one whose numbers fell; a program by an error it prints."""
    alone = len(evidence.inputs) == 1  # beside other files a text's words are not those of whoever asks
    return (
        any(c.by_person for c in complaints)
        or bool(evidence.all(stated.SYMPTOM))
        or (alone and bool(evidence.all(stated.ASKED) or (complaints and evidence.all(stated.DESCRIBED))))
        or any(e.level in LOUD and e.role is Role.ROOT for e in evidence.events)
    )


def _shown(complaints: Sequence[Complaint]) -> bool:
    """Whether an artifact shows a trouble, or somebody was asked for one: what a page's words name may be denied or over."""
    return any(not s.stated or s.file == STATED.file for c in complaints for s in c.reason.sources)


def _complained_of(proved: Proved, complaints: Sequence[Complaint]) -> bool:
    """What a log hints at is a complaint only where no trace accounts for every second; what a person says always is."""
    return bool(complaints) if proved.ledger is None else any(c.by_person for c in complaints)


def _recognised(
    ranking: Ranking,
    proved: Proved,
    evidence: Evidence,
    rules: tuple[Rule, ...],
    complaints: Sequence[Complaint],
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
        if hypothesis.cause in own:
            seen = own.pop(hypothesis.cause)
            # A prover below even odds proves nothing: what is added to it is recognition.
            found.append(replace(seen, confidence=hypothesis.probability, recognised=seen.confidence < EVEN_ODDS))
        elif hypothesis.probability >= WORTH_A_LOOK:
            rule = by_cause[hypothesis.cause]
            finding = advised(rule, hypothesis, evidence, complaints)
            found.append(replace(finding, recognised=True))
    offers = [f for f in proved.findings if f.optional]
    first = [] if any(f.is_verdict for f in found) else [f for f in offers if f.confidence >= EVEN_ODDS]
    # The ranking holds these for unlikely, whatever their prover saw.
    unlikely = [replace(f, confidence=min(f.confidence, ranking.probability(f.cause))) for f in own.values()]
    likely = sorted(
        (*found, *unlikely), key=lambda f: -f.confidence
    )  # no headline is less sure than what stands below it
    return (*first, *likely, *(f for f in offers if f not in first))


def _others(hypotheses: Sequence[Hypothesis]) -> list[str]:
    return [h.cause for h in hypotheses if h.cause != SOMETHING_ELSE]
