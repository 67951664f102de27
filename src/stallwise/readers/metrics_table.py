"""Engine metrics as a table over time: a dashboard's CSV with one column a metric, or rows of time, metric and value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.reading import Cell, Rows
from stallwise.readers._scrape import known_metric, parse_scrape
from stallwise.readers._scraped_facts import facts_from
from stallwise.readers.shapes import delimited
from stallwise.readers.shapes.clock import clock_of

FORMAT = "table of engine metrics"
CAPTURE = "a dashboard's panel: inspect, data, download CSV (series joined by time, unformatted)"
EXCLUSIVE = True
MAX_BYTES = 64 << 20
HEAD_BYTES = 1 << 16
MILLISECONDS = 1e11  # a count since 1970 above this is in milliseconds


def recognises(name: str, head: bytes) -> bool:
    """Rows under a header, in which a metric of a known engine is a title or a cell."""
    text = head[:HEAD_BYTES].decode("utf-8", "replace")
    if delimited.sign_of(text) is None:
        return False
    rows = delimited.table_in(text)
    return rows is not None and (_wide(rows) or _metric_column(rows) is not None)


def read(artifact: Artifact) -> Iterator[Item]:
    """Pages by their time, as if each had been saved."""
    rows = delimited.table_in(artifact.text(MAX_BYTES))
    pages: dict[float, list[str]] = defaultdict(list)
    if rows is not None:
        times = _times(rows)
        for at, line in _of_columns(rows) if _wide(rows) else _of_rows(rows):
            pages[times[at]].append(line)
    scrapes = [scrape for at in sorted(pages) if (scrape := parse_scrape("\n".join(pages[at]), at))]
    if not scrapes:
        raise UnreadableInput(f"{artifact.name} holds no metric with a value", hint="export the series unformatted")
    yield from facts_from(scrapes, artifact.name)


def _wide(rows: Rows) -> bool:
    return any(known_metric(title) for title in rows.columns)


def _metric_column(rows: Rows) -> int | None:
    """The column whose cells are names of metrics."""
    for at, cells in enumerate(rows.cells):
        if cells and all(isinstance(c, str) for c in cells) and any(known_metric(str(c)) for c in cells):
            return at
    return None


def _of_columns(rows: Rows) -> Iterator[tuple[int, str]]:
    for title, cells in zip(rows.columns, rows.cells, strict=True):
        if known_metric(title):
            yield from ((at, f"{title.strip()} {c}") for at, c in enumerate(cells) if isinstance(c, float))


def _of_rows(rows: Rows) -> Iterator[tuple[int, str]]:
    names = _metric_column(rows)
    values = [i for i, t in enumerate(rows.columns) if t.strip().lower() in ("value", "val", "mean", "last")]
    if names is None or not values:
        return
    for at, (metric, value) in enumerate(zip(rows.cells[names], rows.cells[values[0]], strict=True)):
        if isinstance(value, float):
            yield at, f"{metric} {value}"


def _times(rows: Rows) -> list[float]:
    """Seconds of each row, by the first column that is a clock; the rows' order where there is none."""
    for title, cells in zip(rows.columns, rows.cells, strict=True):
        if not known_metric(title):
            found = [_seconds(c) for c in cells]
            if found and all(t is not None for t in found):
                return [t for t in found if t is not None]
    return [float(at) for at in range(len(rows))]


def _seconds(cell: Cell) -> float | None:
    if isinstance(cell, str):
        return clock_of(cell)
    if cell is None:
        return None
    return cell / 1e3 if cell > MILLISECONDS else cell
