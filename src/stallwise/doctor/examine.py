"""The examination: evidence in, diagnosis out. Measure, prove, recognise, answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from stallwise.doctor.answer import answer
from stallwise.doctor.contradictions import contradictions
from stallwise.doctor.find import Paths, listed
from stallwise.doctor.fitting import fitting
from stallwise.doctor.gather import DEFAULT_LIMITS, gather
from stallwise.doctor.idioms import in_its_words
from stallwise.doctor.next_step import not_just_done, telling_first
from stallwise.doctor.prove import prove
from stallwise.doctor.scenes import scenes_of
from stallwise.doctor.stating import state
from stallwise.doctor.subject import subject_of
from stallwise.doctor.symptoms import complaints
from stallwise.doctor.tree import narrate
from stallwise.evidence import collector
from stallwise.evidence.contained import tried
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Note, Source
from stallwise.evidence.limits import EXAMINATION_S, STEP_S, Limits, OutOfTime, at_most_of_work, out_of_time
from stallwise.findings.diagnosis import Diagnosis
from stallwise.findings.finding import Finding, Unknown
from stallwise.findings.rule import Rule
from stallwise.findings.trial import trials_in
from stallwise.measures import measure_evidence
from stallwise.rules import all_rules


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
    """Reads the artifacts and what is stated ("mfu=0.22"), and says what stalls."""
    how = {"engine": engine, "workers": workers, "cache": cache, "live_s": live_s, "base": base, "limits": limits}
    evidence = gather(listed(*paths), **how) if paths else Evidence()  # type: ignore[arg-type]
    state(evidence, facts)
    with collector.paused():
        return examine(evidence)


def examine(evidence: Evidence) -> Diagnosis:
    """Measures, proves, recognises, answers."""
    rules = all_rules()
    proved = prove(evidence, rules, _verdicts(evidence, rules))
    stated = tuple(complaints(evidence))
    cannot_be = contradictions(evidence)
    found = answer(evidence, rules, proved, stated, cannot_be)
    findings = (*found.findings, *proved.of_kernels)
    asks = telling_first(not_just_done(found.next, evidence), (c.symptom for c in stated))
    return fitting(
        Diagnosis(
            subject=subject_of(evidence),
            state=found.verdict.state,
            ranked=found.ranked,
            findings=in_its_words(findings, evidence),
            ledger=proved.ledger,
            evidence=evidence,
            hypotheses=found.hypotheses,
            in_set=found.in_set,
            unknown=proved.unknown,
            next=asks,
            contradictions=cannot_be,
            notes=tuple(evidence.notes),
            tree=narrate(evidence, stated, proved.ledger),
            proofs=found.verdict.proofs,
            limit=found.verdict.limit,
            unexplained=found.verdict.unexplained,
            not_understood=found.verdict.not_understood,
            why_unclear=found.verdict.why_unclear,
            trials=trials_in(evidence),
            scenes=scenes_of(evidence, findings),
        )
    )


def _verdicts(evidence: Evidence, rules: Sequence[Rule]) -> list[Finding | Unknown]:
    """What measures and provers say in the time there is for all of them."""
    found: list[Finding | Unknown] = []
    try:
        with at_most_of_work(EXAMINATION_S), np.errstate(all="ignore"):  # damaged numbers are judged, not warned of
            measure_evidence(evidence)
            for rule in rules:
                found += _verdict(rule, evidence)
                if out_of_time():  # the rule itself was the one to be stopped
                    raise OutOfTime
    except OutOfTime:
        text = f"the examination took longer than its limit of {EXAMINATION_S:.0f} s; some causes were not looked for"
        evidence.notes.append(Note(text, Source(""), lost=True))
    return found


def _verdict(rule: Rule, evidence: Evidence) -> list[Finding | Unknown]:
    """What one prover says; one that fails leaves a note and the others speak."""

    def judged() -> Iterator[Finding | Unknown]:
        yield from rule.verdicts(evidence)

    answers = tried(judged(), f"the rule {rule.cause}", Source(""), STEP_S)
    evidence.notes += [a for a in answers if isinstance(a, Note)]
    return [a for a in answers if not isinstance(a, Note)]
