"""Collects what an engine's lines say at each moment into one table per log."""

from __future__ import annotations

from typing import Any

import numpy as np

from stallwise.evidence.catalog import serving
from stallwise.evidence.fact import Scope, Source, Table
from stallwise.evidence.number_columns import Column

HALF_DAY_S = 43200.0
DAY_S = 86400.0


class EngineSamples:
    """Rows in order of appearance."""

    def __init__(self, name: str, engine: str) -> None:
        self.name, self.engine = name, engine
        self.rows: list[dict[str, float]] = []
        self.clocks: list[float | None] = []

    def put(self, clock_s: float | None, line: int, **values: float | None) -> None:
        """One sample; unknown columns are refused by name."""
        row = {"line": float(line)} | {k: float(v) for k, v in values.items() if v is not None}
        assert set(row) <= set(serving.SAMPLE_COLUMNS)
        self.rows.append(row)
        self.clocks.append(clock_s)

    def table(self, **meta: Any) -> Table | None:
        """All samples as columns, NaN where silent; None without any."""
        columns = {
            name: np.array([row.get(name, np.nan) for row in self.rows], dtype=np.float64)
            for name in serving.SAMPLE_COLUMNS
        }
        return samples_table(self.name, self.engine, self.clocks, columns, **meta)


def samples_table(
    name: str, engine: str, clocks: list[float | None], columns: dict[str, Column], **meta: Any
) -> Table | None:
    """Samples as columns, in the order of their lines; logs without a date wrap at midnight."""
    if not clocks:
        return None
    time_s, wrapped_s, last_s = [], 0.0, None
    for clock_s in clocks:
        now_s = (last_s or 0.0) if clock_s is None else clock_s + wrapped_s
        if last_s is not None and now_s < last_s - HALF_DAY_S:
            wrapped_s += DAY_S
            now_s += DAY_S
        last_s = now_s
        time_s.append(now_s)
    silent = np.full(len(clocks), np.nan)
    whole = {column: columns.get(column, silent) for column in serving.SAMPLE_COLUMNS}
    whole["time_s"] = np.array(time_s) - time_s[0]
    lines = whole["line"]
    source = Source(name, f"lines {int(lines[0])}-{int(lines[-1])}")
    return Table(serving.ENGINE_SAMPLES, whole, source, Scope(), {"engine": engine, "start_s": time_s[0], **meta})
