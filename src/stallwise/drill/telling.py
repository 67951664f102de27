"""Prose after committing: the ideas a good account holds, ticked by the player; what contradicts the commitments does not count."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.drill.commitments import Commitments
from stallwise.drill.hints import not_found
from stallwise.drill.incident import Incident, planted_finding
from stallwise.drill.sheet import Sheet
from stallwise.drill.suspects import suspects


@dataclass(frozen=True, slots=True)
class Line:
    """One idea with its reason; `about` says which commitment it must agree with."""

    about: str
    text: str
    words: tuple[str, ...]  # what a text check looks for; a hint, never a grade


def ideas(incident: Incident, sheet: Sheet) -> tuple[Line, ...]:
    """The account in five lines."""
    known, finding = suspects()[incident.cause], planted_finding(incident)
    said = finding.headline if finding else known.says
    first = min((c for c in sheet.fixes if c.right), key=lambda c: c.place)
    why = finding.because[0].text if finding and finding.because else known.says
    return (
        Line("cause", f"the cause: {said.rstrip('.')}, because {why}", (*known.words, known.says)),
        Line("number", f"the number that settles it: {incident.number.ask} {incident.number.shown}", (incident.number.shown,)),
        Line("fixes", f"what to do first: {first.text}", (first.text, known.fix)),
        Line("falsifier", f"what would prove it wrong: {known.refuted}", (known.refuted,)),
        Line("not-first", f"what not to begin with: {known.trap}", (known.trap,)),
    )  # fmt: skip


def contradicted(line: Line, said: Commitments, incident: Incident, sheet: Sheet) -> str:
    """Why a tick on this line cannot stand; "" where it can."""
    if line.about == "cause":
        best = max(said.cause, key=lambda c: said.cause[c], default="")
        return "" if best == incident.cause else f"you committed to {best or 'no cause'}"
    if line.about == "number":
        right = said.number is not None and incident.number.accepts(said.number)
        return "" if right else "the number you committed to was another"
    if line.about == "fixes":
        first = sheet.fixes[said.fixes[0]].text if said.fixes else ""
        return "" if said.fixes and sheet.fixes[said.fixes[0]].right else f"your list begins with: {first or 'nothing'}"
    if line.about == "falsifier":
        right = said.falsifier is not None and sheet.refuters[said.falsifier].right
        return "" if right else "you committed to another observation"
    right = said.not_first is not None and sheet.first_moves[said.not_first].right
    return "" if right else "you committed to another move"


def upheld(lines: tuple[Line, ...], said: Commitments, incident: Incident, sheet: Sheet) -> tuple[int, int]:
    """Ticks that stand, and all ticks. Where nothing was told there is nothing to tick."""
    if not said.told.strip():
        return 0, 0
    ticked = [line for line, tick in zip(lines, said.ticks, strict=False) if tick]
    return sum(not contradicted(line, said, incident, sheet) for line in ticked), len(ticked)


def hints(lines: tuple[Line, ...], told: str) -> tuple[str, ...]:
    """Abouts of lines that the text check did not find: to look at again, not a grade."""
    return tuple(line.about for line in lines if not_found(told, line.words))
