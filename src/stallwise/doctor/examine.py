"""The examination: evidence in, diagnosis out. Measure, prove, recognise, answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from stallwise.causes import all_rules, rivals_of
from stallwise.doctor.answer import Answer, answer
from stallwise.doctor.ask.bank import bank
from stallwise.doctor.ask.choose import best_question
from stallwise.doctor.contradictions import contradictions
from stallwise.doctor.find import Paths, listed
from stallwise.doctor.findings.diagnosis import SOMETHING_ELSE, Diagnosis, State
from stallwise.doctor.findings.finding import VERDICT_FROM, Finding, Unknown
from stallwise.doctor.findings.program_end import ending_of, own_error
from stallwise.doctor.findings.question import Question
from stallwise.doctor.findings.rule import Rule
from stallwise.doctor.findings.scene import TIMELINE, Scene
from stallwise.doctor.findings.trial import trials_in
from stallwise.doctor.fitting import fitting
from stallwise.doctor.gather import DEFAULT_LIMITS, gather
from stallwise.doctor.idioms import in_its_words
from stallwise.doctor.measures import measure_evidence
from stallwise.doctor.next_step import not_just_done, of_its_kind, relevant_first
from stallwise.doctor.presence import presence_in
from stallwise.doctor.prove import prove
from stallwise.doctor.self_check import self_checked
from stallwise.doctor.stating import state
from stallwise.doctor.subject import subject_of
from stallwise.doctor.symptoms import complaints
from stallwise.doctor.tree import narrate
from stallwise.evidence import gc_pause
from stallwise.evidence.catalog import stated
from stallwise.evidence.error_boundary import tried
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Note, Source
from stallwise.evidence.limits import EXAMINATION_S, STEP_S, Limits, OutOfTime, at_most_of_work, out_of_time
from stallwise.evidence.user_lines import KIND as USER_LINES
from stallwise.late import unwarned

STEPS_OF_LOGS = "log.steps"
SEVERAL_FILES = 2  # with messages: one file alone is in its own order
MOST_ASKED = 5  # questions of one consultation
Ask = Callable[[Question, Diagnosis], str | None]


def diagnose(
    *paths: Paths,
    facts: Sequence[str] = (),
    answers: Sequence[str] = (),
    ask: Ask | None = None,
    engine: str = "local",
    workers: int | None = None,
    cache: bool = True,
    live_s: float = 0.0,
    base: Path | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Diagnosis:
    """Reads the artifacts and what is stated ("mfu=0.22"), and says what stalls.

    `answers` reply to its questions in their order; `ask` is given every further one and returns an answer, or None to end.
    """
    how = {"engine": engine, "workers": workers, "cache": cache, "live_s": live_s, "base": base, "limits": limits}
    evidence = gather(listed(*paths), **how) if paths else Evidence()  # type: ignore[arg-type]
    state(evidence, facts)
    with gc_pause.paused():
        if not answers and ask is None:
            return examine(evidence)
        return _consulted(Consultation(evidence), answers, ask)


def _consulted(consultation: Consultation, answers: Sequence[str], ask: Ask | None) -> Diagnosis:
    for reply in answers:
        consultation.reply(reply)
    while ask is not None and (question := consultation.question) is not None:
        if (answer_ := ask(question, consultation.diagnosis)) is None:
            break
        consultation.reply(answer_)
    return consultation.diagnosis


class Consultation:
    """A diagnosis that goes on with every answer: each is added to what was read, and all is examined again."""

    def __init__(self, evidence: Evidence) -> None:
        self._known, self._put, self.asked, self._picked = evidence, frozenset[str](), 0, False
        self.diagnosis = examine(evidence.copied())

    @property
    def question(self) -> Question | None:
        """What is asked now; None once something is proved, the first answer is likely enough, or five were asked."""
        first = max((h.probability for h in self.diagnosis.hypotheses if h.cause != SOMETHING_ELSE), default=0.0)
        return None if first >= VERDICT_FROM else next(iter(self.diagnosis.questions), None)

    def reply(self, text: str) -> None:
        """Takes a number, the words of a choice, words of one's own, or "don't know"; a number is nothing where nothing is asked."""
        from stallwise.doctor.ask.reply import add_to, choice_of

        question = next(iter(self.diagnosis.questions), None)
        if question is None and text.strip().isdigit():
            return
        choice = choice_of(question or Question("", ()), text)
        if question is not None:
            self.asked += 1
            self._put |= question.keys
            self._picked |= choice in question.choices and bool(choice.states)
        add_to(self._known, choice)
        found = examine(self._known.copied(), self._put, bank().curve if self._picked else None)
        self.diagnosis = found if self.asked < MOST_ASKED else replace(found, questions=())


def examine(evidence: Evidence, put: Collection[str] = (), curve: tuple[float, float] | None = None) -> Diagnosis:
    """Measures, proves, recognises, answers; `put`: what was asked before, `curve`: how sure answers to it may make us."""
    rules = all_rules()
    verdicts, passed = _verdicts(evidence, rules)
    proved = prove(evidence, rules, verdicts)
    complained = tuple(complaints(evidence))
    cannot_be = contradictions(evidence)
    found = answer(evidence, rules, proved, complained, cannot_be, curve)
    measured = proved.ledger is not None and not proved.ledger.source.stated  # every second has its account
    argued = found.findings if measured else _with_rivals(_with_numbers(found.findings, evidence), evidence)
    owner = {rule.cause: rule.owner for rule in rules}
    findings = tuple(replace(f, owner=owner.get(f.cause, "")) for f in (*argued, *proved.of_kernels))
    if evidence.table(USER_LINES):
        from stallwise.doctor.code_line import with_code_line

        findings = tuple(with_code_line(f, evidence) for f in findings)
    asks = relevant_first(of_its_kind(not_just_done(found.next, evidence), evidence), (c.symptom for c in complained))
    answered = fitting(
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
            tree=narrate(evidence, complained, proved.ledger),
            proofs=found.verdict.proofs,
            limit=found.verdict.limit,
            unexplained=found.verdict.unexplained,
            not_understood=found.verdict.not_understood,
            why_unclear=found.verdict.why_unclear,
            trials=trials_in(evidence),
            scenes=_scenes(evidence, findings),
            questions=_questions(evidence, found, put, complained=bool(complained)),
            passed=tuple(sorted(set(passed) - {f.cause for f in findings})),
        )
    )
    return self_checked(_in_order(answered))


def _scenes(evidence: Evidence, findings: tuple[Finding, ...]) -> tuple[Scene, ...]:
    """What a report draws of a trace."""
    if not evidence.table(TIMELINE):
        return ()
    from stallwise.doctor.timeline_views import scenes_of

    return scenes_of(evidence, findings)


def _in_order(found: Diagnosis) -> Diagnosis:
    """Several files are one incident: its first fault leads."""
    seen = found.evidence
    files = {e.source.file for e in seen.events} | {t.source.file for t in seen.table(STEPS_OF_LOGS)}
    if not seen.events or len(files) < SEVERAL_FILES:
        return found
    from stallwise.doctor.incident.lead import with_incident

    return with_incident(found)


def _with_numbers(findings: tuple[Finding, ...], evidence: Evidence) -> tuple[Finding, ...]:
    """The first finding with what each number was and is."""
    if not any(facts for name, facts in evidence.facts.items() if name != stated.SYMPTOM.name):
        return findings
    from stallwise.doctor.compared_numbers import with_numbers

    return with_numbers(findings, evidence)


def _with_rivals(findings: tuple[Finding, ...], evidence: Evidence) -> tuple[Finding, ...]:
    """The first finding with what else shows the same symptom and is not excluded."""
    if not findings:
        return findings
    rivals = rivals_of(findings[0].cause)
    return (replace(findings[0], rivals=tuple(r for r in rivals if r.open(evidence))), *findings[1:])


def _questions(evidence: Evidence, found: Answer, put: Collection[str], *, complained: bool) -> tuple[Question, ...]:
    """The one that separates most, where nothing is proved; a program that says itself why it ended is not asked about."""
    open_ = found.verdict.state is State.UNCLEAR or bool(found.in_set)
    if not open_ or (own_error(ending_of(evidence)) and not found.chances):
        return ()
    best = best_question(found.chances, evidence, presence_in(evidence), put, complained=complained)
    return (best,) if best is not None else ()


def _verdicts(evidence: Evidence, rules: Sequence[Rule]) -> tuple[list[Finding | Unknown], list[str]]:
    """What measures and provers say in the time there is for all of them, and the causes that were looked for in vain."""
    found: list[Finding | Unknown] = []
    passed: list[str] = []
    try:
        with at_most_of_work(EXAMINATION_S), unwarned():
            measure_evidence(evidence)
            for rule in rules:
                said = _verdict(rule, evidence)
                found += said or []
                passed += [rule.cause] if said == [] and rule.can_judge(evidence) else []
                if out_of_time():  # the rule itself was the one to be stopped
                    raise OutOfTime
    except OutOfTime:
        text = f"the examination took longer than its limit of {EXAMINATION_S:.0f} s; some causes were not looked for"
        evidence.notes.append(Note(text, Source(""), lost=True))
    return found, passed


def _verdict(rule: Rule, evidence: Evidence) -> list[Finding | Unknown] | None:
    """What one prover says; one that fails leaves a note, says nothing at all, and the others speak."""

    def judged() -> Iterator[Finding | Unknown]:
        yield from rule.verdicts(evidence)

    answers = tried(judged(), f"the rule {rule.cause}", Source(""), STEP_S)
    failures = [a for a in answers if isinstance(a, Note)]
    evidence.notes += failures
    return [a for a in answers if not isinstance(a, Note)] or (None if failures else [])
