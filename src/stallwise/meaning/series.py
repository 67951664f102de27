"""A table that runs over steps or over a clock: one series for each column that has a name, and its middle."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import numpy as np

from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Series, Source
from stallwise.evidence.reading import Rows
from stallwise.meaning.rows import named_columns
from stallwise.meaning.words import book, words_of
from stallwise.units import Unit, readings_of

LEAST_ROWS = 4  # fewer rows are variants or readings, not a course


def axis_in(rows: Rows) -> tuple[int, str, float] | None:
    """The column that counts steps or tells the time, what it is, and its factor."""
    axes = book("scopes.toml")["axis"]
    titles = [words_of(c) for c in rows.columns]
    for at, words in enumerate(titles):
        if " ".join(words) in axes["step"]:
            return at, "step", 1.0
    for at, words in enumerate(titles[:2]):
        factor = next((f for unit, f in readings_of(words[-1]) if unit is Unit.SECOND), None) if words else None
        if " ".join(words) in axes["time"] or (factor is not None and " ".join(words[:-1]) in axes["time"]):
            return at, "time_s", factor or 1.0
    return None


def courses(rows: Rows, file: str) -> Iterator[Item]:
    """Series over the axis, in its order; nothing where the table has none or it does not rise."""
    axis = axis_in(rows)
    if axis is None or len(rows) < LEAST_ROWS:
        return
    at, over, factor = axis
    x = [cell if isinstance(cell, float) else float("nan") for cell in rows.cells[at]]
    if any(b <= a for a, b in zip(x, x[1:], strict=False)):
        return
    source = Source(file, f"{rows.noun}s {rows.places[0]}-{rows.places[-1]}")
    for column in named_columns(rows):
        points = [
            (p * factor, v) for p, v in zip(x, column.values, strict=True) if p == p and isinstance(v, float) and v == v
        ]
        if len(points) >= LEAST_ROWS and column.label != " ".join(words_of(rows.columns[at])):
            places, values = zip(*points, strict=True)
            yield Series(column.named.quantity, np.array(places), np.array(values), source, over=over)
            yield Fact(column.named.quantity, float(median(values)), source, samples=len(points))
