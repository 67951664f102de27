"""One measured ceiling."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from stallwise.physics.probe.timing import Timing
from stallwise.units import Unit, show


@dataclass(frozen=True, slots=True)
class Reading:
    """A value with its unit, what it was measured on, and how far repeats differ (0 where it was taken once)."""

    name: str
    value: float
    unit: Unit
    how: str
    spread_share: float = 0.0

    @classmethod
    def rate(cls, name: str, unit: Unit, amount: float, timing: Timing, how: str) -> Reading:
        """Amount over time."""
        return cls(name, amount / timing.median_s, unit, how, timing.spread_share)

    @classmethod
    def each(cls, name: str, count: int, timing: Timing, how: str) -> Reading:
        """The time of one of many."""
        return cls(name, timing.median_s / count, Unit.SECOND, how, timing.spread_share)

    def to_dict(self) -> dict[str, Any]:
        """Plain containers."""
        return {**asdict(self), "unit": self.unit.value}

    def __str__(self) -> str:
        return f"{self.name:26}{show(self.value, self.unit):>16}   ±{self.spread_share:4.0%}   {self.how}"
