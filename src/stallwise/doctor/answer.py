"""The answer: proved findings, else recognised causes, else a question; one order, one table, one state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stallwise.doctor.advice import advised
from stallwise.doctor.asking import captures_of, completing, separating
from stallwise.doctor.findings.diagnosis import SOMETHING_ELSE, Hypothesis, NextStep, State
from stallwise.doctor.findings.finding import EVEN_ODDS, Finding, Reason
from stallwise.doctor.findings.program_end import ending_of, own_error, says_all
from stallwise.doctor.findings.proof import PROGRAM_END
from stallwise.doctor.findings.rule import Rule
from stallwise.doctor.findings.symptom import Kind
from stallwise.doctor.prove import Proved
from stallwise.doctor.recognise import Ranking, recognise, trouble_in
from stallwise.doctor.stating import INPUT
from stallwise.doctor.symptoms import Complaint
from stallwise.doctor.table import HEALTHY, cleared, led_by, table_of, unasked
from stallwise.doctor.verdict import LOUD, Judgement, judge
from stallwise.evidence.bag import MANNER
from stallwise.evidence.capture import LOSS_LOG, MEMORY_SNAPSHOT, STACKS, TORCH_TRACE
from stallwise.evidence.catalog import change, expected, quantities, stated
from stallwise.evidence.event import Role
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import STATED

# Where nothing tells what to look at, what shows most of such a trouble.
FIRST_LOOK = {Kind.SPEED: TORCH_TRACE, Kind.STOPPED: STACKS, Kind.MEMORY: MEMORY_SNAPSHOT, Kind.NUMBERS: LOSS_LOG}
ASKED = 0.97  # whoever answers "what is wrong?" has some trouble, as good as always
FAR = 1.25  # times: two runs of one job differ by a few percent, and a quarter is nobody's noise
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
    curve: tuple[float, float] | None = None,
) -> Answer:
    """Proof first, recognition second, question third; `curve`: how sure recognition may be of what it was told on request."""
    symptoms, shown = [c.symptom for c in complaints], in_numbers(evidence, complaints)
    asked = curve is not None or _stated_as_such(complaints) or (shown and not evidence.stems)
    trouble = ASKED if asked else trouble_in(evidence, symptoms, in_numbers=shown)
    aloud = complained(evidence, complaints) and trouble >= EVEN_ODDS
    sentences = any(word.startswith(MANNER) for word in evidence.stems)  # keys and titles neither complain nor deny
    proved = proved.doubted() if sentences and not shown and trouble < EVEN_ODDS else proved
    ranking = None
    verdict = _judged(evidence, proved.findings, proved, complaints, contradictions)
    answers = proved.answers or (not evidence.stems and any(f.is_verdict for f in proved.findings))
    if verdict.state is not State.HEALTHY and not answers and _worded(evidence, proved, complaints):
        ranking = recognise(evidence, symptoms, proved.findings, rules, trouble, curve=curve)
        ranking = ranking if aloud else unasked(ranking)
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
    open_ = verdict.state is State.UNCLEAR or (verdict.state is State.SICK and findings[0].recognised)
    if open_ and not asks and not verdict.proofs:
        kind = symptoms[0].kind if symptoms else Kind.SPEED
        asks = (NextStep(FIRST_LOOK[kind], ()),)
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
    asks = captures_of(proved.findings, evidence)
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


def in_numbers(evidence: Evidence, complaints: Sequence[Complaint]) -> bool:
    """Whether an artifact or numbers show a trouble: what words name may be denied or over."""
    return any(c.in_numbers for c in complaints) or fell_short(evidence)


def _stated_as_such(complaints: Sequence[Complaint]) -> bool:
    """Whether somebody was asked what is wrong: --fact symptom=..., an answer to a question."""
    return any(s.file == STATED.file for c in complaints for s in c.reason.sources)


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


def fell_short(evidence: Evidence) -> bool:
    """Words that rule troubles out ("no stragglers, loss fine") read healthy; a number that fell does not."""
    return any(times >= FAR for times in _times(evidence))


def _times(evidence: Evidence) -> Iterator[float]:
    """How many times worse each number is than what it is held against."""
    yield from (f.number for f in evidence.all(change.WORSE_RATIO))
    for name, facts in list(evidence.facts.items()):
        quantity = quantities()[name]
        hoped = evidence.get(quantities()[quantity.expected]) if quantity.expected in quantities() else None
        now = next((f for f in facts if f.scope.run is None), None)
        if hoped is not None and now is not None and hoped.number > 0 and now.number > 0:
            yield now.number / hoped.number if quantity.better == "lower" else hoped.number / now.number
    bubble, plain = evidence.value(expected.BUBBLE_OF_STEP), evidence.value(expected.BUBBLE_1F1B)
    yield bubble / plain if plain > 0 else 0.0
    speedup = evidence.value(stated.CUSTOM_SPEEDUP)
    yield 1 / speedup if speedup > 0 else 0.0
