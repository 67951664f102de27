"""The exact grades of a round: minutes, commitments and calibration against what was planted; prose never moves a level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stallwise.drill.answer_form import AnswerForm, Choice
from stallwise.drill.commitments import Commitments
from stallwise.drill.debrief import Line, upheld
from stallwise.drill.incident import Incident
from stallwise.drill.requests import artifacts

# Points of a perfect round: 100.
EFFICIENCY, CALIBRATION, NUMBER, SECOND, FIXES, FALSIFIER, NOT_FIRST, COMMUNICATION = 30, 30, 10, 4, 10, 5, 6, 5
ALLOWANCE_MIN = 12.0  # minutes beyond the best play that use the efficiency up: one restart of the job
WORST_EFFICIENCY = -10.0  # asking for everything is worse than asking for nothing
WRONG_FIX = 1 / 3  # each listed fix that does not belong takes a third of the mark
LEVELS = ("fail", "pass", "strong pass", "staff")
PASS_POINTS, STRONG_POINTS, STAFF_POINTS = 55.0, 75.0, 90.0
BELIEVED, SURE, VERY_SURE = 0.5, 0.7, 0.8  # probability on the planted cause that each level asks for
FIX_SHARE = 0.7
STRONG_EXTRA_MIN = 8.0  # one wrong turn


@dataclass(frozen=True, slots=True)
class Part:
    """One line of the report."""

    heading: str  # efficiency, correctness, calibration, communication
    name: str
    points: float
    of: int
    why: str


@dataclass(frozen=True, slots=True)
class Score:
    """All parts, the level, and what the next levels would have needed."""

    parts: tuple[Part, ...]
    level: int
    needs: tuple[tuple[str, tuple[str, ...]], ...]
    trap: str  # the tempting move that was made; "" where none was
    minutes: int
    best_minutes: int

    @property
    def points(self) -> float:
        """Of a hundred; a bluff can take it below zero."""
        return sum(p.points for p in self.parts)

    @property
    def word(self) -> str:
        """fail, pass, strong pass or staff."""
        return LEVELS[self.level]

    def by_heading(self) -> dict[str, tuple[float, int]]:
        """Points and their maximum by heading."""
        found: dict[str, tuple[float, int]] = {}
        for part in self.parts:
            points, of = found.get(part.heading, (0.0, 0))
            found[part.heading] = (points + part.points, of + part.of)
        return found


def quadratic(given: Mapping[str, float], truth: str, choices: int) -> float:
    """A proper score, 1 for certainty that is right, 0 for knowing nothing, below for a bluff: no other report pays more.

    The quadratic score of a distribution over the choices and "something else", moved and stretched so that even odds
    over the choices give zero; that keeps it proper.
    """
    rest = max(0.0, 1.0 - sum(given.values()))
    squares = sum(p * p for cause, p in given.items() if cause != truth) + rest * rest
    score = 1.0 - ((1.0 - given.get(truth, 0.0)) ** 2 + squares) / 2
    even = 1.0 - ((1.0 - 1 / choices) ** 2 + (choices - 1) / choices**2) / 2
    return (score - even) / (1.0 - even)


def score(
    incident: Incident,
    form: AnswerForm,
    commitments: Commitments,
    asked: tuple[str, ...],
    lost_min: int,
    lines: tuple[Line, ...],
) -> Score:
    """`asked`: kinds that were handed out, in order; `lost_min`: minutes spent on asking for what is not there."""
    price = {kind: artifacts()[kind].minutes for kind in (*incident.kinds, *asked)}
    minutes = sum(price[k] for k in asked) + lost_min
    best = min(price[k] for k in incident.deciding)
    settled = [k for k in asked if k in incident.deciding]
    fix_share, why_fixes, trap = _fixes(form, commitments.fixes)
    belief = commitments.cause.get(incident.cause, 0.0)
    believed = belief >= BELIEVED and belief == max(commitments.cause.values(), default=0.0)
    second = (incident.also[0] if incident.also else "") == commitments.second
    falsifier = commitments.falsifier is not None and form.refuters[commitments.falsifier].right
    not_first = commitments.not_first is not None and form.first_moves[commitments.not_first].right
    number = commitments.number is not None and incident.number.accepts(commitments.number)
    agreeing, ticked = upheld(lines, commitments, incident, form)
    parts = (
        _efficiency(minutes, best, settled),
        Part("calibration", "cause", CALIBRATION * _belief_score(commitments, incident, form), CALIBRATION,
             _belief(commitments, incident)),
        Part("correctness", "decisive number", NUMBER * number, NUMBER, _number(commitments, incident)),
        Part("correctness", "second fault", SECOND * second, SECOND, f"there was {_second(incident)}"),
        Part("correctness", "order of fixes", FIXES * fix_share, FIXES, why_fixes),
        Part("correctness", "what would refute it", FALSIFIER * falsifier, FALSIFIER, _right(form.refuters)),
        Part("correctness", "what must not come first", NOT_FIRST * not_first, NOT_FIRST, _right(form.first_moves)),
        Part("communication", "told, by your own ticks", COMMUNICATION * agreeing / max(1, len(lines)), COMMUNICATION,
             f"{ticked} of {len(lines)} ideas ticked, {agreeing} agree with what you committed to"),
    )  # fmt: skip
    points = sum(p.points for p in parts)
    conditions = (
        (
            (believed, f"the planted cause first, with {BELIEVED:.0%} or more"),
            (bool(settled), "the artifact that settles it, before the answer"),
            (not trap, "not to begin with the trap"),
            (points >= PASS_POINTS, f"{PASS_POINTS:.0f} points"),
        ),
        (
            (belief >= SURE, f"the planted cause with {SURE:.0%} or more"),
            (number, "the decisive number"),
            (fix_share >= FIX_SHARE, "the fixes that belong here, in order"),
            (minutes <= best + STRONG_EXTRA_MIN, f"at most {best + STRONG_EXTRA_MIN:.0f} minutes"),
            (points >= STRONG_POINTS, f"{STRONG_POINTS:.0f} points"),
        ),
        (
            (belief >= VERY_SURE, f"the planted cause with {VERY_SURE:.0%} or more"),
            (falsifier, "what would refute it"),
            (not_first, "what must not come first"),
            (second, "whether there is a second fault"),
            (points >= STAFF_POINTS, f"{STAFF_POINTS:.0f} points"),
        ),
    )  # fmt: skip
    missing = [tuple(text for met, text in level if not met) for level in conditions]
    level = next((n for n, lacks in enumerate(missing) if lacks), len(conditions))
    needs = tuple((LEVELS[n + 1], missing[n]) for n in range(level, len(conditions)))
    return Score(parts, level, needs, trap, minutes, best)


def _efficiency(minutes: int, best: int, settled: list[str]) -> Part:
    if not settled:
        why = "what settles it was not asked for; saving minutes so is no merit"
        return Part("efficiency", "minutes", 0.0, EFFICIENCY, why)
    share = 1.0 - max(0, minutes - best) / ALLOWANCE_MIN
    why = f"{minutes} minutes; {artifacts()[settled[0]].what} alone, {best} minutes, settles it"
    return Part("efficiency", "minutes", max(WORST_EFFICIENCY, EFFICIENCY * share), EFFICIENCY, why)


def _belief_score(commitments: Commitments, incident: Incident, form: AnswerForm) -> float:
    return quadratic(commitments.cause, incident.cause, len(form.causes) + 1) if commitments.cause else 0.0


def _belief(commitments: Commitments, incident: Incident) -> str:
    if not commitments.cause:
        return f"nothing was said; it was {incident.cause}"
    given = ", ".join(f"{c} {p:.0%}" for c, p in sorted(commitments.cause.items(), key=lambda x: -x[1]))
    return f"you said {given}; it was {incident.cause}"


def _number(commitments: Commitments, incident: Incident) -> str:
    if commitments.number is None:
        return f"nothing was said; it was {incident.number.shown}"
    within = "" if incident.number.within == 1 else f", right within {incident.number.within - 1:.0%}"
    return f"it was {incident.number.shown}{within}"


def _second(incident: Incident) -> str:
    return f"{incident.also[0]} beside it" if incident.also else "none"


def _right(choices: tuple[Choice, ...]) -> str:
    return next(c.text for c in choices if c.right)


def _fixes(form: AnswerForm, listed: tuple[int, ...]) -> tuple[float, str, str]:
    """Share of the mark, why, and the trap where the list begins with it."""
    real = sorted((c for c in form.fixes if c.right), key=lambda c: c.place)
    best = real[0].text
    if not listed:
        return 0.0, f"nothing was listed; first would be: {best}", ""
    chosen = [form.fixes[n] for n in listed]
    places = [c.place for c in chosen if c.right]
    wrong = sum(not c.right for c in chosen)
    pairs = [(a, b) for a, b in form.ordered if a in places and b in places]
    kept = sum(places.index(a) < places.index(b) for a, b in pairs) / len(pairs) if pairs else 1.0
    share = max(0.0, len(places) / len(real) * kept - WRONG_FIX * wrong)
    first_real = next((n for n, c in enumerate(chosen) if c.right), len(chosen))
    trap = next((c.text for c in chosen[:first_real] if c.trap), "")
    why = f"{len(places)} of {len(real)} that help, {wrong} that do not; first would be: {best}"
    return share, why, trap
