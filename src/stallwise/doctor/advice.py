"""From a likely cause to something a user can act on: the cause's own advice, or what its page says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from stallwise.doctor.findings.clue import WHEN_SEEN, Clue
from stallwise.doctor.findings.diagnosis import Hypothesis
from stallwise.doctor.findings.finding import PERHAPS, Finding, Fix
from stallwise.doctor.findings.rule import Rule
from stallwise.doctor.recognise.model import model
from stallwise.doctor.symptoms import Complaint
from stallwise.evidence.error_boundary import failure_of
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Note, Source

MOST_FIXES = 4
AGAINST = 0.5  # of the odds are left: less would not change anybody's mind
MOST_OVERTURNING = 2
LIKELY = 0.5  # more likely than all else together: said as it is, with its share beside it


def advised(rule: Rule, hypothesis: Hypothesis, evidence: Evidence, complaints: Iterable[Complaint] = ()) -> Finding:
    """A finding whose confidence is the hypothesis's probability; what only words point at is said beside the numbers it explains."""
    finding = _advice(rule, evidence, hypothesis.probability)
    numbers = (c.reason for c in complaints if c.in_numbers and c.symptom in rule.explains)
    explained = numbers if hypothesis.by_words_alone else ()
    reasons = tuple(dict.fromkeys((*finding.because, *explained, *hypothesis.because)))
    captures = finding.next or tuple(
        dict.fromkeys(q.from_ for q in rule.needs if q.from_ is not None and not evidence.all(q))
    )
    return replace(
        finding,
        cause=rule.cause,
        family=rule.family,
        confidence=hypothesis.probability,
        because=reasons,
        against=tuple(dict.fromkeys((*finding.against, *hypothesis.against))),
        next=captures,
        overturn=overturning(rule, evidence),
    )


def overturning(rule: Rule, evidence: Evidence) -> tuple[str, ...]:
    """The clues that nobody has answered yet and that would speak most against the cause, with what answers them."""
    open_ = {
        clue.says_not: clue
        for clue in rule.clues
        if clue.says_not and _denied(clue) <= AGAINST and clue.outcome(evidence) is None
    }
    strongest = sorted(open_.values(), key=_denied)[:MOST_OVERTURNING]
    return tuple(f"{clue.says_not}{_answered_by(clue)}" for clue in strongest)


def _denied(clue: Clue) -> float:
    """What is left of the odds where the clue does not hold."""
    under, other = model().answers[clue.strength]
    return 1.0 if clue.strength.endswith(WHEN_SEEN) else (1.0 - under) / (1.0 - other)


def _answered_by(clue: Clue) -> str:
    capture = next((q.from_ for q in clue.reads if q.from_ is not None), None)
    return f" (see {capture.artifact})" if capture else ""


def _advice(rule: Rule, evidence: Evidence, probability: float) -> Finding:
    """What the rule makes of the numbers; where it fails, what its page says, and a note."""
    if rule.advise is None:
        return _from_page(rule, probability)
    try:
        return rule.advise(evidence)
    except Exception as error:
        evidence.notes.append(Note(failure_of(f"the advice on {rule.cause}", error).problem, Source("")))
        return _from_page(rule, probability)


def _from_page(rule: Rule, probability: float) -> Finding:
    title = rule.page.splitlines()[0] if rule.page else ""
    return Finding(
        headline=title if probability >= LIKELY else f"{PERHAPS}{_inside_a_sentence(title)}",
        confidence=0.0,
        because=(),
        fixes=tuple(Fix(a, worth=_worth(rule)) for a in _sentences(_section(rule.page, "Fix"))[:MOST_FIXES]),
        summary=" ".join(_section(rule.page, "What it means").split()),
    )


def _worth(rule: Rule) -> str:
    """Honest about a gain that nobody can price yet, and what would price it."""
    capture = next((q.from_ for q in rule.needs if q.from_ is not None), None)
    return f"not priced yet: needs {capture.artifact}" if capture else "not priced yet"


def _inside_a_sentence(line: str) -> str:
    return line[:1].lower() + line[1:] if line[:2] != line[:2].upper() else line


def _section(page: str, title: str) -> str:
    match = re.search(rf"^## {re.escape(title)}[ \t]*(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    return match[1].strip() if match else ""


def _sentences(text: str) -> list[str]:
    plain = " ".join(text.split())
    parts = re.split(r"(?<=[.;])\s+(?=[A-Z`0-9])|(?:^|\s)(?:\d+\.|-)\s+", plain)
    return [p.strip().rstrip(";") for p in parts if len(p.strip()) > 3]
