"""Prose after committing: the ideas a good account holds, ticked by the player; what contradicts the commitments does not count."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.drill.answer_form import AnswerForm
from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.commitments import Commitments
from stallwise.drill.hints import not_found
from stallwise.drill.incident import Incident, planted_finding


@dataclass(frozen=True, slots=True)
class Line:
    """One idea with its reason; `about` says which commitment it must agree with."""

    about: str
    text: str
    words: tuple[str, ...]  # what a text check looks for; a hint, never a grade


def ideas(incident: Incident, form: AnswerForm) -> tuple[Line, ...]:
    """The account in five lines."""
    known, finding = cause_profiles()[incident.cause], planted_finding(incident)
    headline = finding.headline if finding else known.says
    first = min((c for c in form.fixes if c.right), key=lambda c: c.place)
    why = finding.because[0].text if finding and finding.because else known.says
    return (
        Line("cause", f"the cause: {headline.rstrip('.')}, because {why}", (*known.words, known.says)),
        Line("number", f"the number that settles it: {incident.number.ask} {incident.number.shown}", (incident.number.shown,)),
        Line("fixes", f"what to do first: {first.text}", (first.text, known.fix)),
        Line("falsifier", f"what would prove it wrong: {known.refuted}", (known.refuted,)),
        Line("not-first", f"what not to begin with: {known.trap}", (known.trap,)),
    )  # fmt: skip


def contradicted(line: Line, commitments: Commitments, incident: Incident, form: AnswerForm) -> str:
    """Why a tick on this line cannot stand; "" where it can."""
    if line.about == "cause":
        best = max(commitments.cause, key=lambda c: commitments.cause[c], default="")
        return "" if best == incident.cause else f"you committed to {best or 'no cause'}"
    if line.about == "number":
        right = commitments.number is not None and incident.number.accepts(commitments.number)
        return "" if right else "the number you committed to was another"
    if line.about == "fixes":
        first = form.fixes[commitments.fixes[0]].text if commitments.fixes else ""
        return (
            ""
            if commitments.fixes and form.fixes[commitments.fixes[0]].right
            else f"your list begins with: {first or 'nothing'}"
        )
    if line.about == "falsifier":
        right = commitments.falsifier is not None and form.refuters[commitments.falsifier].right
        return "" if right else "you committed to another observation"
    right = commitments.not_first is not None and form.first_moves[commitments.not_first].right
    return "" if right else "you committed to another move"


def upheld(lines: tuple[Line, ...], commitments: Commitments, incident: Incident, form: AnswerForm) -> tuple[int, int]:
    """Ticks that stand, and all ticks. Where nothing was told there is nothing to tick."""
    if not commitments.debrief.strip():
        return 0, 0
    ticked = [line for line, tick in zip(lines, commitments.ticks, strict=False) if tick]
    return sum(not contradicted(line, commitments, incident, form) for line in ticked), len(ticked)


def hints(lines: tuple[Line, ...], text: str) -> tuple[str, ...]:
    """Abouts of lines that the text check did not find: to look at again, not a grade."""
    return tuple(line.about for line in lines if not_found(text, line.words))
