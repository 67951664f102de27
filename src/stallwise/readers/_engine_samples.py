"""Collects what an engine's lines say at each moment into one table per log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stallwise.evidence.catalog import serving
from stallwise.evidence.fact import Scope, Source, Table
from stallwise.evidence.number_columns import Column

HALF_DAY_S = 43200.0
DAY_S = 86400.0


def samples_of(
    name: str, engine: str, rows: Sequence[tuple[float | None, dict[str, float]]], **meta: Any
) -> Table | None:
    """What was said at each moment, with the clock where one stood, in the order of appearance; NaN where it is silent."""
    columns = {
        column: np.array([values.get(column, np.nan) for _, values in rows], dtype=np.float64)
        for column in serving.SAMPLE_COLUMNS
    }
    return samples_table(name, engine, [clock_s for clock_s, _ in rows], columns, **meta)


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
