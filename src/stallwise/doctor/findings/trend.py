"""How a measure moved over several runs, and between which of them it changed."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.doctor.findings.comparison import Comparison
from stallwise.evidence.shown import Shown
from stallwise.units import Unit

SCHEMA = "stallwise.trend/1"


@dataclass(frozen=True, slots=True)
class RunPoint:
    """One run."""

    name: str
    value: float | None  # none: it does not tell the measure
    state: str = ""
    cause: str = ""
    when: str = ""


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of level: `at` is the first run after it."""

    at: int
    before: float
    after: float
    ratio: float  # how many times as slow; below one is faster
    against: float  # times the noise that a change must exceed to be told from it
    why: Comparison | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trend(Shown):
    """The whole answer."""

    metric: str
    unit: Unit
    rate: bool  # more is better
    runs: tuple[RunPoint, ...]
    shifts: tuple[Shift, ...]
    noise_share: float  # by how much runs of one level differ

    def _line(self) -> str:
        change = f"changed at run {self.shifts[0].at + 1}" if self.shifts else "no change beyond its noise"
        return f"{self.metric} of {len(self.runs)} runs: {change}"


@dataclass(frozen=True, slots=True)
class Moved:
    """The last run of a series against those of the week before it."""

    metric: str
    unit: Unit
    value: float
    before: float
    ratio: float  # how many times as slow
    runs: int
