"""The result of a round: six dimensions, each missing, a pass or a strong pass; a level; what it would have needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallwise.drill.claims.weigh import MISSING, PASS, STRONG, Mark, Weighed
from stallwise.drill.incident import Incident
from stallwise.drill.requests import artifacts

EARLY_S, IN_TIME_S = 45.0, 90.0  # to the first hypothesis
SPECIFIC = 2  # exhibits that a strong pass has asked for
EVERYTHING = 0.75  # of the menu: who asks for so much has asked for nothing in particular
PASS_POINTS, STRONG_POINTS = 6, 9  # of 12: half, three quarters
NEEDED = ("artifacts", "cause", "fixes")  # no level without them
LEVELS = ("fail", "pass", "strong pass")
WORDS = ("missing", "pass", "strong")
DIMENSIONS = {
    "time": "time to the first hypothesis",
    "artifacts": "asked for the right artifacts before guessing",
    "cause": "root cause",
    "fixes": "fixes in the order of their worth",
    "boring": "plain explanation first",
    "numbers": "quantitative reasoning",
}


@dataclass(frozen=True, slots=True)
class Result:
    """Marks by dimension, hints that were paid for, and how sure the player was."""

    marks: dict[str, Mark]
    hints: int
    sure: float | None
    right: bool  # the cause, whatever the rest

    @property
    def points(self) -> int:
        """Of twelve, less one a hint."""
        return sum(m.level for m in self.marks.values()) - self.hints

    @property
    def level(self) -> int:
        """0 fail, 1 pass, 2 strong pass."""
        if any(self.marks[name].level == MISSING for name in NEEDED) or self.points < PASS_POINTS:
            return MISSING
        strong = self.marks["cause"].level == STRONG and self.marks["fixes"].level == STRONG
        return STRONG if strong and self.points >= STRONG_POINTS else PASS

    @property
    def word(self) -> str:
        """fail, pass or strong pass."""
        return LEVELS[self.level]

    @property
    def loss(self) -> float | None:
        """The quadratic loss of what was believed: 0 is a sure right answer, 1 a sure wrong one; lower is better calibrated."""
        return None if self.sure is None else (self.sure - self.right) ** 2


def time_mark(first_s: float | None) -> Mark:
    """From the start to the first hypothesis."""
    if first_s is None:
        return Mark(MISSING, "no hypothesis was stated")
    level = STRONG if first_s < EARLY_S else PASS if first_s < IN_TIME_S else MISSING
    return Mark(level, f"after {first_s:.0f} s; {IN_TIME_S:.0f} s pass, {EARLY_S:.0f} s are strong")


def artifact_mark(incident: Incident, asked: Sequence[str]) -> Mark:
    """What was opened before the account."""
    settled = [k for k in asked if k in incident.deciding]
    best = " or ".join(artifacts()[k].what for k in incident.deciding)
    if not settled:
        return Mark(MISSING, f"what settles it was not opened: {best}")
    names = ", ".join(artifacts()[k].what for k in asked)
    if len(asked) >= EVERYTHING * len(incident.kinds):
        return Mark(PASS, f"nearly everything was asked for; {best} settles it")
    return Mark(STRONG if len(asked) >= SPECIFIC else PASS, f"asked for {names}")


def number_mark(stated: Mark, answered: bool | None, why: str) -> Mark:
    """Numbers of the account, and the answer to the follow-up."""
    how = {True: "is right", False: "is wrong", None: "was left out"}[answered]
    both = answered and stated.level
    level = STRONG if both else PASS if answered else min(stated.level, PASS)
    return Mark(level, f"{stated.why}; the follow-up {how}. {why}")


def result(incident: Incident, asked: Sequence[str], first_s: float | None, weighed: Weighed, answered: bool | None, why: str,
           hints: int, sure: float | None) -> Result:  # fmt: skip
    """All six."""
    marks = {
        "time": time_mark(first_s),
        "artifacts": artifact_mark(incident, asked),
        "cause": weighed.cause,
        "fixes": weighed.fixes,
        "boring": weighed.boring,
        "numbers": number_mark(weighed.numbers, answered, why),
    }
    return Result(marks, hints, sure, weighed.cause.level > MISSING)
