"""Tables with a row a worker, step or microbatch: titles place a row, and name times of parts of a step or of operations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stallwise.evidence.fact import Source, Table
from stallwise.evidence.operations import INTEGERS, KIND, PASSES, PLACES, UNKNOWN, Work
from stallwise.evidence.reading import Cell, Rows
from stallwise.late import np
from stallwise.readers._cells import seconds_in
from stallwise.readers._operation_names import names_a_host, rank_in_file, roles, work_of
from stallwise.readers.records.plain_rows import plain_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

MIN_ROWS = 4
LONGEST_S = 600.0  # of a part of a step
KINDS = ("kind", "name", "op", "optype", "op_type", "operation", "event", "type")
STARTS, ENDS = ("start", "start_ts", "begin", "ts", "start_time"), ("end", "end_ts", "end_time", "stop", "finish")
LENGTHS = ("duration", "dur", "length", "elapsed", "time")
_UNIT = re.compile(r"_(?:ns|us|ms|s|sec|seconds)$")


def operations_in(rows: Rows, file: str, fewest: int = MIN_ROWS) -> Table | None:
    """The operation table of such rows; None where they are none. Without starts (`laid_out`) a row's parts follow one another."""
    titles = [re.sub(r"\W+", "_", c.lower()).strip("_") for c in rows.columns]
    found: dict[str, NDArray[np.int64]] = {}
    for at, title in enumerate(titles):
        role = roles().get(title)
        if role and role not in found and _whole(rows.cells[at]):
            found[role] = _integers(rows.cells[at])
    if not (found.keys() & set(PLACES)) and (own := rank_in_file(file)) is not None:
        found["rank"] = np.full(len(rows), own, np.int64)
    if not (found.keys() & set(PLACES)) or not (found.keys() & {"step", "microbatch"}) or len(rows) < fewest:
        return None
    hosts: list[str] = []
    for cells in [rows.cells[at] for at, title in enumerate(titles) if names_a_host(title)][:1]:
        found["host"], hosts = _coded(cells)
    bare = [_UNIT.sub("", title) for title in titles]
    kind = next(
        (at for at, t in enumerate(bare) if t in KINDS and any(isinstance(c, str) for c in rows.cells[at])), None
    )
    start, end, length = (
        next((at for at, t in enumerate(bare) if t in words), None) for words in (STARTS, ENDS, LENGTHS)
    )
    if kind is not None and (length is not None or (start is not None and end is not None)):
        begin = _seconds(rows, start) if start is not None else np.full(len(rows), np.nan)
        took = _seconds(rows, length) if length is not None else _seconds(rows, end or 0) - begin
        names = [str(c) for c in rows.cells[kind]]
        labels = {name: at for at, name in enumerate(dict.fromkeys(names))}
        long = _table(file, found, [labels[n] for n in names], list(labels), begin, took, laid_out=start is None)
        return _with_hosts(long, hosts)
    parts = [at for at, t in enumerate(titles) if t not in roles() and _is_part(rows.columns[at], rows.cells[at])]
    return _with_hosts(_wide(rows, file, found, parts), hosts) if parts else None


def _coded(cells: Sequence[Cell]) -> tuple[NDArray[np.int64], list[str]]:
    """Names as numbers; a number names a host, too."""
    words = [f"{c:g}" if isinstance(c, float) else str(c) if c is not None else "" for c in cells]
    names = {word: at for at, word in enumerate(dict.fromkeys(w for w in words if w))}
    return np.array([names.get(w, UNKNOWN) for w in words], np.int64), list(names)


def _with_hosts(table: Table, hosts: list[str]) -> Table:
    if hosts:
        table.meta["hosts"] = hosts
    return table


def _is_part(title: str, cells: Sequence[Cell]) -> bool:
    """A time of a known part of a step; without a unit, seconds of what can be nothing but a time. Some may be missing."""
    numbers = [c for c in cells if isinstance(c, float)]
    if not numbers or any(isinstance(c, str) for c in cells) or (work := work_of(title)) is Work.OTHER:
        return False
    plain = work in (*PASSES, Work.GRADIENT_SYNC, Work.OPTIMIZER) and max(numbers, default=0.0) < LONGEST_S
    return plain or seconds_in(plain_words(title)) is not None


def _wide(rows: Rows, file: str, found: dict[str, NDArray[np.int64]], parts: list[int]) -> Table:
    """A row a worker in a step: its parts one after the other."""
    took = np.stack([_seconds(rows, at) for at in parts], axis=1)
    begin = np.nancumsum(took, axis=1) - took
    count = len(rows)
    spread = {role: np.repeat(values, len(parts)) for role, values in found.items()}
    labels = [rows.columns[at] for at in parts]
    return _table(file, spread, list(range(len(parts))) * count, labels, begin.ravel(), took.ravel(), laid_out=True)


def _seconds(rows: Rows, at: int) -> NDArray[np.float64]:
    scale = seconds_in(plain_words(rows.columns[at])) or 1.0
    return np.array([c if isinstance(c, float) else np.nan for c in rows.cells[at]]) * scale


def _table(
    file: str, found: dict[str, NDArray[np.int64]], label: Sequence[int], labels: list[str], begin: NDArray[np.float64],
    took: NDArray[np.float64], *, laid_out: bool,
) -> Table:  # fmt: skip
    keep = np.isfinite(took) & (laid_out | np.isfinite(begin))
    columns = {name: np.full(len(took), UNKNOWN, np.int64) for name in (*INTEGERS, "rank")} | found
    columns["label"] = np.array(label, np.int64)
    every = {**columns, "start_s": begin, "duration_s": took}
    kept = {name: values[keep] for name, values in every.items()}
    meta = {"labels": labels, "works": [int(work_of(x)) for x in labels], "laid_out": laid_out}
    return Table(KIND, kept, Source(file, f"{len(took)} operations"), meta=meta)


def of_step_parts(
    file: str, ranks: NDArray[np.int64], steps: NDArray[np.int64], labels: list[str], seconds: NDArray[np.float64],
    hosts: Sequence[str | None] = (),
) -> Table:  # fmt: skip
    """Parts of a step that lines of a log time, (line, part); of each line the host, where known."""
    count = len(labels)
    found = {"rank": np.repeat(ranks, count), "step": np.repeat(steps, count)}
    codes, names = _coded(list(hosts))
    if names:
        found["host"] = np.repeat(codes, count)
    begin = np.cumsum(seconds, axis=1) - seconds
    places = list(range(count)) * len(ranks)
    return _with_hosts(_table(file, found, places, labels, begin.ravel(), seconds.ravel(), laid_out=True), names)


def _whole(cells: Sequence[Cell]) -> bool:
    return all(_is_index(c) for c in cells if c is not None) and any(c is not None for c in cells)


def _is_index(cell: Cell) -> bool:
    """A whole number that may count ranks, steps or stages."""
    return isinstance(cell, float) and abs(cell) < LARGEST and cell.is_integer()


LARGEST = 2.0**53  # whole numbers beyond are not exact in a table of floats


def _integers(cells: Sequence[Cell]) -> NDArray[np.int64]:
    return np.array([int(c) if isinstance(c, float) and _is_index(c) else UNKNOWN for c in cells], np.int64)
