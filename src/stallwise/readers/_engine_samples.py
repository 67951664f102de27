"""Collects what an engine's lines say at each moment into one table per log."""

from __future__ import annotations

from typing import Any

import numpy as np

from stallwise.evidence.catalog import serving
from stallwise.evidence.fact import Scope, Source, Table

HALF_DAY_S = 43200.0
DAY_S = 86400.0


class EngineSamples:
    """Rows in order of appearance; logs without a date wrap at midnight."""

    def __init__(self, name: str, engine: str) -> None:
        self.name, self.engine = name, engine
        self.rows: list[dict[str, float]] = []
        self._wrapped_s = 0.0
        self._last_s: float | None = None

    def put(self, clock_s: float | None, line: int, **values: float | None) -> None:
        """One sample; unknown columns are refused by name."""
        if clock_s is None:
            clock_s = (self._last_s or 0.0) - self._wrapped_s
        if self._last_s is not None and clock_s + self._wrapped_s < self._last_s - HALF_DAY_S:
            self._wrapped_s += DAY_S
        self._last_s = clock_s + self._wrapped_s
        row = {"time_s": self._last_s, "line": float(line)}
        row |= {k: float(v) for k, v in values.items() if v is not None}
        assert set(row) <= set(serving.SAMPLE_COLUMNS)
        self.rows.append(row)

    def table(self, **meta: Any) -> Table | None:
        """All samples as columns, NaN where silent; None without any."""
        if not self.rows:
            return None
        columns = {
            name: np.array([row.get(name, np.nan) for row in self.rows], dtype=np.float64)
            for name in serving.SAMPLE_COLUMNS
        }
        start_s = float(columns["time_s"][0])
        columns["time_s"] = columns["time_s"] - start_s
        first, last = int(self.rows[0]["line"]), int(self.rows[-1]["line"])
        source = Source(self.name, f"lines {first}-{last}")
        return Table(
            serving.ENGINE_SAMPLES, columns, source, Scope(), {"engine": self.engine, "start_s": start_s, **meta}
        )
