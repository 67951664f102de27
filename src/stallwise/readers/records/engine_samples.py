"""Puts what an engine says at each moment into one table per log."""

from __future__ import annotations

from typing import Any, NamedTuple

from stallwise.evidence.catalog import serving
from stallwise.evidence.engine_samples import SAMPLE_COLUMNS
from stallwise.evidence.fact import Scope, Source, Table
from stallwise.evidence.number_columns import Column
from stallwise.late import np

HALF_DAY_S = 43200.0
DAY_S = 86400.0


class Samples(NamedTuple):
    """What some of the lines say, as columns; NaN where one is silent."""

    lines: list[int]  # indices
    columns: dict[str, Column]


def merged(name: str, engine: str, found: list[Samples], clocks: Column, **meta: Any) -> Table | None:
    """All of them in the order of their lines, with the clock of each; None without any. Logs without a date wrap at midnight."""
    if not found or not any(s.lines for s in found):
        return None
    order = np.argsort(lines := np.concatenate([s.lines for s in found]), kind="stable")
    whole = {"line": lines[order] + 1.0}
    for column in SAMPLE_COLUMNS:
        if column not in whole:
            parts = [s.columns.get(column, np.full(len(s.lines), np.nan)) for s in found]
            whole[column] = np.concatenate(parts)[order]
    clocks = clocks[order]
    last_clock = np.maximum.accumulate(
        np.where(np.isnan(clocks), -1, np.arange(len(clocks)))
    )  # the last line with a clock
    time_s = np.where(last_clock < 0, 0.0, clocks[last_clock])
    time_s += DAY_S * np.concatenate([[0.0], np.cumsum(np.diff(time_s) < -HALF_DAY_S)])
    whole["time_s"] = time_s - time_s[0]
    source = Source(name, f"lines {int(whole['line'][0])}-{int(whole['line'][-1])}")
    return Table(
        serving.ENGINE_SAMPLES, whole, source, Scope(), {"engine": engine, "start_s": float(time_s[0]), **meta}
    )
