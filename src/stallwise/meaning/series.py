"""A table that runs over steps or over a clock: a series for each column that has a name, and its middle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cache
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Series, Source
from stallwise.evidence.reading import Cell, Course, Printed, Rows, Wanted, points_of
from stallwise.meaning.courses import named
from stallwise.meaning.loop import column_of
from stallwise.meaning.rows import named_columns
from stallwise.meaning.scopes import axis_of
from stallwise.meaning.words import book, words_of
from stallwise.units import Unit, readings_of

LEAST_ROWS = 4  # fewer rows are variants or readings, not a course
LEADING = 2  # columns in which people put what they count by; further right it must run to be a clock
LEAST_CLOCK = 6  # a few steps may rise by chance
MOSTLY = 0.8  # of the rows: a count starts again with each epoch
RECORD = "row"  # of a list of objects: without a step they count themselves


@dataclass(frozen=True, slots=True)
class Axis:
    """The column that counts the rows, in steps or seconds; -1 where the rows count themselves."""

    at: int
    over: str
    factor: float = 1.0


def axis_in(rows: Rows) -> Axis | None:
    """Steps before a clock, a clock before epochs."""
    known, titles = _axes(), [" ".join(words_of(c)) for c in rows.columns]
    for at, title in enumerate(titles):
        numbers = [c for c in rows.cells[at] if isinstance(c, float)]
        if (title in known["step"] and numbers) or (title in known["rising"] and _rises(numbers, MOSTLY)):
            return Axis(at, "step")
    for at, title in enumerate(titles):
        if at >= LEADING and not _rises([x for c in rows.cells[at] if (x := _moment(c)) is not None]):
            continue
        base, _, unit = title.rpartition(" ")
        factor = next((f for u, f in readings_of(unit) if u is Unit.SECOND), None) if base in known["clock"] else None
        if factor is not None or title in known["clock"]:
            return Axis(at, "time_s", factor or float(known["clock"][title]))
        if axis_of(rows.columns[at]) == "time" and all(_moment(c) is not None for c in rows.cells[at]):
            return Axis(at, "time_s")
    epoch = next((at for at, title in enumerate(titles[:LEADING]) if title in known["epoch"]), None)
    if epoch is not None:
        return Axis(epoch, "step")
    counts_itself = rows.noun == RECORD and any(n and n.quantity is run.LOSS for n in map(column_of, rows.columns))
    return Axis(-1, "step") if counts_itself else None


def _rises(numbers: Sequence[float], share: float = 1.0) -> bool:
    return len(numbers) > 1 and sum(a < b for a, b in pairwise(numbers)) >= share * (len(numbers) - 1)


@cache
def _axes() -> dict[str, Any]:
    return dict(book("loop.toml")["axis"])


def courses(rows: Rows, file: str) -> Iterator[Item]:
    """Series over the axis, and what a text column says in every row."""
    axis = axis_in(rows)
    if axis is None or len(rows) < 2:
        return
    places = _places(rows, axis)
    log = Printed(
        file, lambda wanted: _columns(rows, axis, places, wanted), axis.over, table=True, apart=rows.noun != RECORD
    )
    found = [i for i in named(log) if not _is_clock(i, rows)]
    yield from found
    numbers = [p for p in places if p is not None]
    if axis.at >= 0 and len(numbers) == len(places) >= LEAST_ROWS and _rises(numbers):
        yield from _others(rows, axis, numbers, file)


def _places(rows: Rows, axis: Axis) -> list[float | None]:
    """Where each row stands; a count that starts again with each epoch goes on."""
    if axis.at < 0:
        return [float(at) for at in range(len(rows))]
    places: list[float | None] = []
    previous, offset = -1.0, 0.0
    for cell in rows.cells[axis.at]:
        x = _number(cell) if axis.over == "step" else _moment(cell)
        if x is None:
            places.append(None)
            continue
        x *= axis.factor
        if x + offset < previous and axis.over == "step":
            offset = previous + 1 - x
        previous = x + offset
        places.append(previous)
    return places


def _columns(rows: Rows, axis: Axis, places: list[float | None], wanted: Wanted) -> Iterator[Course]:
    shared = _shared_unit(rows.columns)
    for at, title in enumerate(rows.columns):
        if at == axis.at or not wanted(title, "", False):
            continue
        found = column_of(title)
        bare = found is not None and found.quantity.unit is Unit.SECOND and not found.unit_known
        points = [
            (x, value, line)
            for x, cell, line in zip(places, rows.cells[at], rows.places, strict=True)
            if x is not None and (value := _number(cell)) is not None
        ]
        yield Course(title, shared if bare else "", points_of(points))


def _number(cell: Cell) -> float | None:
    if isinstance(cell, float):
        return cell
    if not isinstance(cell, str):
        return None
    try:
        return float(cell.strip().rstrip("%"))
    except ValueError:
        return None


def _moment(cell: Cell) -> float | None:
    """Seconds of a clock: a number, a date with its time, or a time of the day."""
    if (number := _number(cell)) is not None or not isinstance(cell, str):
        return number
    text = cell.strip().replace("Z", "+00:00")
    for read in (datetime.fromisoformat, lambda t: datetime.combine(date(2000, 1, 1), time.fromisoformat(t))):
        try:
            return read(text).replace(tzinfo=UTC).timestamp()
        except (ValueError, OverflowError):
            continue
    return None


def _shared_unit(titles: tuple[str, ...]) -> str:
    """The unit of time that a table's columns share: beside `step_ms`, a bare `data_wait` is in milliseconds too."""
    last = {w for title in titles for w in words_of(title)[-1:] if w not in ("min", "minutes")}
    units = {w for w in last if any(u is Unit.SECOND for u, _ in readings_of(w))}
    return units.pop() if len(units) == 1 else ""


def _is_clock(item: Item, rows: Rows) -> bool:
    """A column of elapsed seconds that only rises is the clock, not what one step took."""
    if not isinstance(item, (Series, Fact)) or item.quantity is not run.STEP_TIME:
        return False
    for title, cells in zip(rows.columns, rows.cells, strict=True):
        numbers = [c for c in cells if isinstance(c, float)]
        if "elapsed" in words_of(title) and len(numbers) >= LEAST_CLOCK and _rises(numbers):
            return isinstance(item, Series)
    return False


def _others(rows: Rows, axis: Axis, places: list[float], file: str) -> Iterator[Item]:
    """Columns that the lexicon names."""
    source = Source(file, f"{rows.noun}s {rows.places[0]}-{rows.places[-1]}")
    taken = {" ".join(words_of(t)) for t in rows.columns if column_of(t) is not None or axis_of(t)}
    for column in named_columns(rows):
        if column.label in taken:
            continue
        points = [(p, v) for p, v in zip(places, column.values, strict=True) if isinstance(v, float) and v == v]
        if len(points) >= LEAST_ROWS:
            x, values = zip(*points, strict=True)
            yield Series(column.named.quantity, np.array(x), np.array(values), source, over=axis.over)
            yield Fact(column.named.quantity, float(median(values)), source, samples=len(points))
