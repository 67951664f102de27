"""A table that runs over steps or over a clock: a series for each column that has a name, and its middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Series, Source
from stallwise.evidence.reading import Cell, Curve, Printed, Rows, Wanted
from stallwise.late import np
from stallwise.readers.text.logged_series import named
from stallwise.readers.text.loop import column_of
from stallwise.readers.text.rows import named_columns
from stallwise.readers.text.scopes import axis_of
from stallwise.readers.text.words import word_table, words_of
from stallwise.units import Unit, readings_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_ROWS = 4  # fewer rows are variants or readings, not a course
LEADING = 2  # columns in which people put what they count by; further right it must run to be a clock
LEAST_CLOCK = 6  # a few steps may rise by chance
MOSTLY = 0.8  # of the rows: a count starts again with each epoch
Numbers: TypeAlias = "NDArray[np.float64]"
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
        if (title in known["step"] and rows.count(at)) or (
            title in known["rising"] and (len(rows) == 1 or _rises_evenly(_floats(rows, at)))
        ):
            return Axis(at, "step")
    for at, title in enumerate(titles):
        if at >= LEADING and not _rises(_moments(rows, at)):
            continue
        base, _, unit = title.rpartition(" ")
        factor = next((f for u, f in readings_of(unit) if u is Unit.SECOND), None) if base in known["clock"] else None
        if factor is not None or title in known["clock"]:
            return Axis(at, "time_s", factor or float(known["clock"][title]))
        if axis_of(rows.columns[at]) == "time" and all(moment(c) is not None for c in rows.cells[at]):
            return Axis(at, "time_s")
    epoch = next((at for at, title in enumerate(titles[:LEADING]) if title in known["epoch"]), None)
    if epoch is not None:
        return Axis(epoch, "step")
    counts_itself = rows.noun == RECORD and any(n and n.quantity is run.LOSS for n in map(column_of, rows.columns))
    return Axis(-1, "step") if counts_itself else None


def _floats(rows: Rows, at: int) -> Numbers:
    """The numbers of a column, what is none left out."""
    whole = rows.numbers(at)
    return np.array([c for c in rows.cells[at] if isinstance(c, float)]) if whole is None else whole


def _moments(rows: Rows, at: int) -> Numbers:
    """The moments of a column, what is none left out."""
    return np.array([x for c in rows.cells[at] if (x := moment(c)) is not None])


def _rises(numbers: Numbers, share: float = 1.0) -> bool:
    return len(numbers) > 1 and int(np.sum(np.diff(numbers) > 0)) >= share * (len(numbers) - 1)


def _rises_evenly(numbers: Numbers) -> bool:
    """A log prints every so many; sizes that somebody tries double."""
    steps = np.diff(numbers)
    return len(steps) > 0 and int(np.sum((steps > 0) & (steps == np.median(steps)))) >= MOSTLY * len(steps)


@cache
def _axes() -> dict[str, Any]:
    return dict(word_table("loop.toml")["axis"])


def table_series(rows: Rows, file: str) -> Iterator[Item]:
    """Series over the axis, and what a text column says in every row."""
    axis = axis_in(rows)
    if axis is None or len(rows) < (1 if axis.at >= 0 else 2):
        return
    places = _places(rows, axis)
    log = Printed(
        file,
        lambda wanted: _columns(rows, axis, places, wanted),
        axis.over,
        table=True,
        variants=rows.noun != RECORD,
        noun=rows.noun,
    )
    found = [i for i in named(log) if not _is_clock(i, rows)]
    yield from found
    if axis.at >= 0 and len(places) >= LEAST_ROWS and _rises(places):
        yield from _others(rows, axis, places, file)


def _places(rows: Rows, axis: Axis) -> Numbers:
    """Where each row stands, NaN where it does not say; a count that starts again with each epoch goes on."""
    if axis.at < 0:
        return np.arange(len(rows), dtype=float)
    places = _as_numbers(rows, axis.at, _number if axis.over == "step" else moment)[0] * axis.factor
    if axis.over == "step":
        known = np.flatnonzero(~np.isnan(places))
        counts = places[known]
        again = np.flatnonzero(np.diff(counts) < 0) + 1
        gaps = np.zeros(len(counts))
        gaps[again] = counts[again - 1] + 1 - counts[again]
        places[known] = counts + np.cumsum(gaps)
    return places


def _as_numbers(rows: Rows, at: int, read: Callable[[Cell], float | None]) -> tuple[Numbers, NDArray[np.bool_]]:
    """A column as numbers, and which of its cells are any: a loss may be no number, too."""
    if (whole := rows.numbers(at)) is not None:
        return whole, np.ones(len(whole), dtype=bool)
    found = list(map(read, rows.cells[at]))
    return np.array(found, dtype=float), np.array([x is not None for x in found])


def _columns(rows: Rows, axis: Axis, places: Numbers, wanted: Wanted) -> Iterator[Curve]:
    shared = _shared_unit(rows.columns)
    for at, title in enumerate(rows.columns):
        if at == axis.at or not wanted(title, "", False):
            continue
        found = column_of(title)
        bare = found is not None and found.quantity.unit is Unit.SECOND and not found.unit_known
        values, known = _as_numbers(rows, at, _number)
        points = np.column_stack([places, values, rows.places])[known & ~np.isnan(places)]
        yield Curve(title, shared if bare else "", points)


def _number(cell: Cell) -> float | None:
    if isinstance(cell, float):
        return cell
    if not isinstance(cell, str):
        return None
    try:
        return float(cell.strip().rstrip("%"))
    except ValueError:
        return None


def moment(cell: Cell) -> float | None:
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
    for at, title in enumerate(rows.columns):
        if "elapsed" in words_of(title) and rows.count(at) >= LEAST_CLOCK and _rises(_floats(rows, at)):
            return isinstance(item, Series)
    return False


def _others(rows: Rows, axis: Axis, places: Numbers, file: str) -> Iterator[Item]:
    """Columns that the lexicon names."""
    source = Source(file, f"{rows.noun}s {rows.places[0]}-{rows.places[-1]}")
    taken = {" ".join(words_of(t)) for t in rows.columns if column_of(t) is not None or axis_of(t)}
    for column in named_columns(rows):
        if column.label in taken:
            continue
        values = column.numbers
        known = ~np.isnan(values)
        if known.sum() >= LEAST_ROWS:
            yield Series(column.named.quantity, places[known], values[known], source, over=axis.over)
            yield Fact(column.named.quantity, float(np.median(values[known])), source, samples=int(known.sum()))
