"""The examination: evidence in, diagnosis out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from stallwise.doctor.consider import consider
from stallwise.doctor.contradictions import contradictions
from stallwise.doctor.differential import CLEAR, MOST_SURE, SOMETHING_ELSE
from stallwise.doctor.find import Paths, listed
from stallwise.doctor.fitting import fitting
from stallwise.doctor.gather import DEFAULT_LIMITS, gather
from stallwise.doctor.idioms import in_its_words
from stallwise.doctor.next_step import next_steps, not_just_done, telling_first
from stallwise.doctor.rank import SURE_ENOUGH
from stallwise.doctor.said import in_numbers, said
from stallwise.doctor.scenes import scenes_of
from stallwise.doctor.stating import INPUT as STATED_INPUT
from stallwise.doctor.stating import state
from stallwise.doctor.subject import subject_of
from stallwise.doctor.suspects import suspect
from stallwise.doctor.suspicion import suspicion
from stallwise.doctor.symptoms import Complaint
from stallwise.doctor.tree import narrate
from stallwise.doctor.verdict import LOUD, judge
from stallwise.evidence import collector
from stallwise.evidence.capture import Capture
from stallwise.evidence.catalog import stated
from stallwise.evidence.contained import tried
from stallwise.evidence.event import Role
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Note, Source
from stallwise.evidence.ledger import Ledger
from stallwise.evidence.limits import EXAMINATION_S, STEP_S, Limits, OutOfTime, at_most_of_work, out_of_time
from stallwise.findings.diagnosis import Diagnosis, Hypothesis, NextStep, State
from stallwise.findings.finding import Finding, Unknown
from stallwise.findings.proof import Proof
from stallwise.findings.rule import Rule
from stallwise.findings.trial import trials_in
from stallwise.measures import measure_evidence
from stallwise.rules import all_rules

MOST_ASKED = 5
ANSWERS = 0.6  # rules that say less were right in 17 of 47 cases and the counts in 24; above, in 50 of 70 against 48
CARRIED = 0.4  # by clues: nearly even odds
FEWEST_ASKED = 2  # one artifact may be impossible to get
WORTH_A_LOOK = 0.1  # suspects below this are listed, not argued
HEALTHY = "none"  # the cause of a run that nothing ails


def diagnose(
    *paths: Paths,
    facts: Sequence[str] = (),
    engine: str = "local",
    workers: int | None = None,
    cache: bool = True,
    live_s: float = 0.0,
    base: Path | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Diagnosis:
    """Reads the artifacts, hears what is stated ("mfu=0.22"), and says what stalls."""
    how = {"engine": engine, "workers": workers, "cache": cache, "live_s": live_s, "base": base, "limits": limits}
    evidence = gather(listed(*paths), **how) if paths else Evidence()  # type: ignore[arg-type]
    state(evidence, facts)
    with collector.paused():
        return examine(evidence)


def examine(evidence: Evidence) -> Diagnosis:
    """Measures, judges, ranks; with little evidence the differential answers."""
    rules = all_rules()
    known = consider(evidence, rules, _examined(evidence, rules))
    ledger, spoken, heard, unknown = known.ledger, known.kernels_speak, known.heard, known.unknown
    # What a rule has seen is an answer, and where little but numbers is told so is what clues carry as far as words may go alone;
    # what a rule holds for as likely as not is a witness among others.
    answered = any(f.confidence >= ANSWERS and not f.optional for f in known.seen) or (
        in_numbers(said(evidence))
        and any(h.probability >= CARRIED and not h.by_rate_alone and h.cause != SOMETHING_ELSE for h in known.table)
    )
    suspecting = bool(evidence.stems) and not known.proved and not answered
    cannot_be = contradictions(evidence)
    hypotheses = known.table
    if suspecting:
        # A person complains in words, asks about a run, or tells of one whose numbers fell; a program complains by an error that it
        # prints. Numbers that fell in what a program wrote are no complaint of anybody's.
        said_aloud = (
            any(c.by_person for c in heard)
            or bool(evidence.all(stated.SYMPTOM))
            # Beside other files their words are not those of whoever asks.
            or (len(evidence.inputs) == 1 and bool(evidence.all(stated.ASKED) or (heard and evidence.all(stated.TOLD))))
            or any(e.level in LOUD and e.role is Role.ROOT for e in evidence.events)
        ) and not cannot_be  # likeness makes no verdict of what contradicts itself
        symptoms = [c.symptom for c in heard]
        beside = any(name != STATED_INPUT for name in evidence.inputs)
        of_people = frozenset(c.symptom for c in heard if c.by_person)
        asked = of_people if beside else frozenset()
        hypotheses = suspicion(
            evidence,
            symptoms,
            known.table,
            known.seen,
            said_aloud=said_aloud,
            asked=asked,
            complained=of_people,
        )
        hypotheses = _with_offers(hypotheses, known.seen)
    seen = _as_sure_as_the_table(known.seen, hypotheses)
    suspects = () if spoken else _suspects(hypotheses, rules, seen, evidence, heard)
    # Kernels are ordered by their own seconds, which no probability may overturn.
    ranked = (
        tuple(dict.fromkeys(f.cause for f in seen))
        if spoken
        else _by_probability(seen, hypotheses)
        if suspecting
        else _order(seen, suspects, hypotheses, ledger)
    )
    # What a log hints at is a complaint only where no trace accounts for every second; what a person says always is.
    complained = bool(heard) if ledger is None else any(c.by_person for c in heard)
    verdict = judge(evidence, (*seen, *suspects), ledger, complained=complained, contradictions=cannot_be)
    healthy = verdict.state is State.HEALTHY
    if healthy:
        judged = {f.cause for f in seen}
        suspects = ()
        hypotheses = _proven(tuple(h for h in hypotheses if h.cause in judged), verdict.confidence)
        ranked = (HEALTHY, *(c for c in ranked if c in judged and c != HEALTHY))
    order = {cause: place for place, cause in enumerate(ranked)}
    told = sorted((*seen, *suspects), key=lambda f: order.get(f.cause, len(order)))
    asks = () if healthy else _next(seen, unknown, evidence)
    if not healthy and (ledger is None or heard):  # little is measured: what separates the hypotheses tells most
        asks = _asks(next_steps(hypotheses, rules, evidence), tuple(told)) or asks
    if verdict.state is State.UNCLEAR:
        asks = _completing(verdict.proofs, asks)
    asks = telling_first(not_just_done(asks, evidence), (c.symptom for c in heard))
    found = Diagnosis(
        subject=subject_of(evidence),
        state=verdict.state,
        ranked=ranked,
        findings=in_its_words((*told, *known.of_kernels), evidence),
        ledger=ledger,
        evidence=evidence,
        hypotheses=_in_order_of_the_answer(hypotheses, ranked),
        unknown=unknown,
        next=asks,
        contradictions=cannot_be,
        notes=tuple(evidence.notes),
        tree=narrate(evidence, heard, ledger),
        proofs=verdict.proofs,
        limit=verdict.limit,
        unexplained=verdict.unexplained,
        not_understood=verdict.not_understood,
        why_unclear=verdict.why_unclear,
        trials=trials_in(evidence),
        scenes=scenes_of(evidence, (*told, *known.of_kernels)),
    )
    return fitting(found)


def _examined(evidence: Evidence, rules: Sequence[Rule]) -> list[Finding | Unknown]:
    """What measures and rules say in the time there is for all of them."""
    found: list[Finding | Unknown] = []
    try:
        with at_most_of_work(EXAMINATION_S), np.errstate(all="ignore"):  # damaged numbers are judged, not warned of
            measure_evidence(evidence)
            for rule in rules:
                found += _verdicts(rule, evidence)
                if out_of_time():  # the rule itself was the one to be stopped
                    raise OutOfTime
    except OutOfTime:
        said = f"the examination took longer than its limit of {EXAMINATION_S:.0f} s; some causes were not looked for"
        evidence.notes.append(Note(said, Source(""), lost=True))
    return found


def _verdicts(rule: Rule, evidence: Evidence) -> list[Finding | Unknown]:
    """What one rule says; one that fails leaves a note and the others speak."""

    def said() -> Iterator[Finding | Unknown]:
        yield from rule.verdicts(evidence)

    answers = tried(said(), f"the rule {rule.cause}", Source(""), STEP_S)
    evidence.notes += [a for a in answers if isinstance(a, Note)]
    return [a for a in answers if not isinstance(a, Note)]


def _by_probability(seen: tuple[Finding, ...], hypotheses: tuple[Hypothesis, ...]) -> tuple[str, ...]:
    """Where nothing is proved the likeliest comes first; what a rule saw and only offers comes before what is below even."""
    offered = {f.cause: f.confidence for f in seen if f.optional}
    table = [h for h in hypotheses if h.cause != SOMETHING_ELSE and h.cause not in offered]
    likely = [h.cause for h in table if h.probability >= SURE_ENOUGH]
    shown = [c for c, confidence in offered.items() if confidence >= SURE_ENOUGH]
    return tuple(dict.fromkeys((*likely, *shown, *(h.cause for h in table), *(f.cause for f in seen))))


def _with_offers(hypotheses: tuple[Hypothesis, ...], seen: tuple[Finding, ...]) -> tuple[Hypothesis, ...]:
    """The table with what a rule saw and only offers as sure as the rule: it stands first, so the others share the rest."""
    for offer in (f for f in seen if f.optional and f.confidence >= SURE_ENOUGH):
        old = next((h for h in hypotheses if h.cause == offer.cause), Hypothesis(offer.cause, 0.0, offer.because))
        sure = min(offer.confidence, MOST_SURE)
        likely = any(h.probability >= SURE_ENOUGH for h in hypotheses if h.cause != SOMETHING_ELSE)
        if likely or old.probability >= sure:
            continue
        left = (1.0 - sure) / (1.0 - old.probability)
        rest = (replace(h, probability=h.probability * left) for h in hypotheses if h.cause != offer.cause)
        raised = replace(old, probability=sure, because=offer.because or old.because, by_words_alone=False)
        hypotheses = tuple(sorted((raised, *rest), key=lambda h: (-h.probability, h.cause)))
    return hypotheses


def _as_sure_as_the_table(seen: tuple[Finding, ...], hypotheses: tuple[Hypothesis, ...]) -> tuple[Finding, ...]:
    """One truth: the first finding of a cause is as sure as the table says."""
    table = {h.cause: h.probability for h in hypotheses}
    told: set[str] = set()
    found = []
    for finding in seen:
        if finding.cause in table and finding.cause not in told and not finding.optional:
            finding = replace(finding, confidence=table[finding.cause])
            told.add(finding.cause)
        found.append(finding)
    # Among many explanations a weak one may have lost its odds, and with them its place above what is likely.
    return tuple(sorted(found, key=lambda f: not (f.confidence >= SURE_ENOUGH and not f.optional)))


def _in_order_of_the_answer(hypotheses: tuple[Hypothesis, ...], ranked: tuple[str, ...]) -> tuple[Hypothesis, ...]:
    """The headline is the first row of the table; what is left for other causes is the last."""
    place = {cause: at for at, cause in enumerate(ranked)}
    return tuple(sorted(hypotheses, key=lambda h: (h.cause == SOMETHING_ELSE, place.get(h.cause, len(place)))))


def _proven(hypotheses: tuple[Hypothesis, ...], sure: float) -> tuple[Hypothesis, ...]:
    """The table of a proven run: "none" holds what the proof is sure of."""
    rest = [h for h in hypotheses if h.cause not in (HEALTHY, SOMETHING_ELSE)]
    rivals = sum(h.probability for h in rest if not h.found)
    if rivals > 1.0 - sure:  # what a proof leaves is shared by all that could still be
        rest = [h if h.found else replace(h, probability=h.probability * (1.0 - sure) / rivals) for h in rest]
    left = max(0.0, 1.0 - sure - sum(h.probability for h in rest))
    found = [*rest, Hypothesis(HEALTHY, sure), Hypothesis(SOMETHING_ELSE, left)]
    return tuple(sorted(found, key=lambda h: (-h.probability, h.cause)))


def _completing(proofs: tuple[Proof, ...], asks: tuple[NextStep, ...]) -> tuple[NextStep, ...]:
    """What would finish a proof comes with what would separate the suspects."""
    known = {step.capture for step in asks}
    own = [NextStep(c, (HEALTHY,)) for p in proofs for c in p.next if c not in known]
    return (*asks, *dict.fromkeys(own))[:MOST_ASKED]


def _asks(told: tuple[NextStep, ...], said: tuple[Finding, ...]) -> tuple[NextStep, ...]:
    """What tells most first; then what the first suspect itself would like to see."""
    known = {step.capture for step in told}
    first = said[0] if said and (said[0].confidence < CLEAR or len(told) < FEWEST_ASKED) else None
    own = [NextStep(c, (first.cause,)) for c in first.next if c not in known] if first else []
    return (*told, *own)[:MOST_ASKED]


def _suspects(
    hypotheses: tuple[Hypothesis, ...],
    rules: tuple[Rule, ...],
    seen: tuple[Finding, ...],
    evidence: Evidence,
    heard: Sequence[Complaint],
) -> tuple[Finding, ...]:
    """Hypotheses that no rule has seen for itself, likely enough to be worth acting on."""
    if any(f.confidence >= CLEAR and not f.optional for f in seen):
        return ()
    by_cause = {r.cause: r for r in rules}
    known = {f.cause for f in seen}
    likely = [h for h in hypotheses if h.cause in by_cause and h.cause not in known and h.probability >= WORTH_A_LOOK]
    return tuple(suspect(by_cause[h.cause], h, evidence, heard) for h in likely)


def _order(
    seen: tuple[Finding, ...], suspects: tuple[Finding, ...], hypotheses: tuple[Hypothesis, ...], ledger: Ledger | None
) -> tuple[str, ...]:
    """Causes, best first: by seconds where a ledger priced them, by probability where little is known."""
    measured = list(dict.fromkeys(f.cause for f in seen))
    probability = {h.cause: h.probability for h in hypotheses}
    if ledger is None and not any(f.blocking or f.explains for f in seen if f.confidence >= SURE_ENOUGH):
        optional = {f.cause for f in seen if f.optional}
        measured.sort(key=lambda c: (c in optional, -probability.get(c, 0.0)))
        best = max((probability.get(c, 0.0) for c in measured if c not in optional), default=0.0)
        ahead = [f.cause for f in suspects if f.confidence > best]
        measured = [*ahead, *measured]
    others = [h.cause for h in hypotheses if h.cause not in measured and h.cause != SOMETHING_ELSE]
    return tuple(dict.fromkeys((*measured, *others)))


def _next(seen: tuple[Finding, ...], unknown: tuple[Unknown, ...], evidence: Evidence) -> tuple[NextStep, ...]:
    """What the findings themselves ask for; without findings what rules lacked."""
    sure = [f for f in seen if f.confidence >= SURE_ENOUGH and not f.optional]
    wanted = [(f.cause, f.next) for f in sure[:2]] or [(u.cause, u.next) for u in unknown]
    have = {q.from_ for facts in evidence.facts.values() for q in [facts[0].quantity] if facts and q.from_}
    separates: dict[Capture, list[str]] = {}
    for cause, captures in wanted:
        for capture in captures:
            if capture not in have:
                separates.setdefault(capture, []).append(cause)
    return tuple(NextStep(c, tuple(dict.fromkeys(causes))) for c, causes in separates.items())[:3]
