"""How close predictions came: the figures of `plan validate`, the same for every kind of table."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.physics.costs.fitted import publisher_of

Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class Scored:
    """One row: what was predicted, with its interval, and what was measured."""

    row_id: str
    source: str
    metric: str  # what is compared, with its unit: "time_s", "bubble_share"
    measured: float | None
    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    note: str = ""  # why it was not predicted, or what was assumed
    answer: str = ""  # from how much knowledge of the cluster, where that differs
    wide: tuple[float, float] | None = None  # the 90% interval, where `low` and `high` are those of another share

    @property
    def error_pct(self) -> float | None:
        """Signed, in percent of the measured value."""
        if self.predicted is None or not self.measured:
            return None
        return 100 * (self.predicted / self.measured - 1)

    @property
    def inside(self) -> bool | None:
        """Whether the measured value lies in the interval; None where there is none."""
        if self.measured is None or self.low is None or self.high is None:
            return None
        return self.low <= self.measured <= self.high

    @property
    def error_points(self) -> float | None:
        """For shares: the difference in percentage points."""
        if self.predicted is None or self.measured is None or not self.metric.endswith("_share"):
            return None
        return 100 * (self.predicted - self.measured)


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a CSV file as text."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as stream:
            rows = [
                {k: v or "" for k, v in row.items() if isinstance(k, str) and not isinstance(v, list)}
                for row in csv.DictReader(stream)
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnreadableInput(f"{path} is not a readable CSV file: {error}", hint="give a CSV with a header") from None
    if not rows:
        raise UnreadableInput(f"{path} has no rows", hint="give a CSV with a header and at least one row")
    return rows


def number(row: Row, name: str) -> float | None:
    """A cell as a number; None where empty or not one."""
    try:
        value = float(row.get(name, ""))
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None


def summary(kind: str, rows: int, scored: Sequence[Scored]) -> dict[str, Any]:
    """The figures over all rows and by source."""
    sources = sorted({s.source for s in scored})
    return {
        "kind": kind,
        "rows": rows,
        "rows_predicted": len({s.row_id for s in scored if s.predicted is not None and s.measured is not None}),
        **figures_of(scored),
        "by_publisher": by_publisher(scored),
        "not_predicted": {s.row_id: s.note for s in scored if s.predicted is None},
        "by_source": {name: figures_of([s for s in scored if s.source == name]) for name in sources},
        "per_row": [
            {**asdict(s), "error_pct": s.error_pct}
            | ({"error_points": s.error_points} if s.error_points is not None else {})
            for s in scored
        ],
    }


def by_publisher(scored: Sequence[Scored]) -> dict[str, Any]:
    """Figures in which every publisher counts once, all its releases and tables together."""
    names = sorted({publisher_of(s.source) for s in scored})
    each = {name: figures_of([s for s in scored if publisher_of(s.source) == name]) for name in names}
    each = {name: figures for name, figures in each.items() if figures["mean_abs_pct"] is not None}
    inside = [f["inside_interval_share"] for f in each.values() if f["inside_interval_share"] is not None]
    return {
        "publishers": len(each),
        "mean_abs_pct": fmean(f["mean_abs_pct"] for f in each.values()) if each else None,
        "inside_interval_share": fmean(inside) if inside else None,
        "each": each,
    }


def figures_of(scored: Sequence[Scored]) -> dict[str, Any]:
    """Errors and intervals over some rows."""
    found = [s for s in scored if s.predicted is not None and s.measured is not None]
    errors = [e for s in found if (e := s.error_pct) is not None]
    points = [e for s in found if (e := s.error_points) is not None]
    inside = [s.inside for s in found if s.inside is not None]
    figures: dict[str, Any] = {
        "predicted": len(found),
        "mean_abs_pct": fmean(map(abs, errors)) if errors else None,
        "median_abs_pct": median(map(abs, errors)) if errors else None,
        "bias_pct": fmean(errors) if errors else None,
        "inside_interval_share": fmean(inside) if inside else None,
    }
    if points:
        figures |= {
            "mean_abs_points": fmean(map(abs, points)),
            "worst_abs_points": max(map(abs, points)),
        }
    return figures
