"""What two bundles of artifacts differ in: one line a change, most seconds first."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.shown import Shown

SCHEMA = "stallwise.comparison/1"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that changed between the good and the bad bundle."""

    what: str  # "input wait", "kernel sgemm_128x64", "mfu"
    good: str
    bad: str
    delta_s: float | None = None  # seconds a step (or request) the change explains; positive: slower
    relative: float | None = None  # bad over good, minus one
    worse: bool | None = None  # None: neither better nor worse, only different
    cause: str = ""
    because: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Shown):
    """The whole answer of `stallwise compare`."""

    good: Diagnosis
    bad: Diagnosis
    metric: str  # what the verdict rests on: "step time"
    slower: float | None  # bad over good in that metric, minus one; positive is a regression
    changes: tuple[Change, ...]  # by seconds explained, then by relative change
    setup: tuple[Change, ...]  # differences of hardware, versions and settings
    appeared: tuple[str, ...]  # causes that only the bad bundle has
    vanished: tuple[str, ...]
    unexplained_s: float | None = None
    rate: bool = False  # the metric is one of which more is better

    def _line(self) -> str:
        if self.worse_by is None:
            by = "nothing to compare"
        else:
            by = f"{self.metric} {abs(self.worse_by):.1%} {'better' if self.worse_by < 0 else 'worse'}"
        return f"{by}; {len(self.changes)} changes, {len(self.appeared)} new causes"

    @property
    def worse_by(self) -> float | None:
        """The change of the metric itself, positive when worse: a rate that fell to a half is 50% worse, not 100%."""
        if self.slower is None or not self.rate:
            return self.slower
        return 1.0 - 1.0 / (1.0 + self.slower)

    @property
    def regressions(self) -> tuple[Change, ...]:
        """What got worse."""
        return tuple(c for c in self.changes if c.worse)

    @property
    def improvements(self) -> tuple[Change, ...]:
        """What got better."""
        return tuple(c for c in self.changes if c.worse is False)
