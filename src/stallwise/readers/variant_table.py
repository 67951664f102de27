"""A benchmark of variants as a table: one row a variant, with its time (with_sync against without_sync, A against B)."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.readers._cells import seconds_in
from stallwise.readers.shapes._plainly import plain_words
from stallwise.readers.shapes.delimited import first_row, table_in

FORMAT = "table of variants"
_NAMES = {"variant", "mode", "arm", "case", "setting", "setup", "version", "run"}
_STEPPING = {"step", "iter", "iteration", "it", "batch", "time", "forward"}
_WITHOUT = {"no", "without", "wo", "off", "removed", "nosync", "async"}


def recognises(name: str, head: bytes) -> bool:
    """A first column of names and a column of times."""
    columns = first_row(head)
    return len(columns) >= 2 and "_".join(plain_words(columns[0])) in _NAMES and any(map(_is_time, columns[1:]))


def _is_time(column: str) -> bool:
    words = plain_words(column)
    return seconds_in(words) is not None and bool(_STEPPING & set(words))


def read(artifact: Artifact) -> Iterator[Item]:
    """The time of each variant, and what leaving out the synchronisation won."""
    rows = table_in(artifact.text())
    column = next((c for c in rows.columns[1:] if _is_time(c)), None) if rows is not None else None
    if rows is None or column is None:
        return
    scale = seconds_in(plain_words(column)) or 1.0
    gain: dict[bool, float] = {}  # with and without
    for name, cell, number in zip(map(str, rows.cells[0]), rows.column(column), rows.places, strict=True):
        if isinstance(cell, float):
            yield Fact(run.STEP_TIME, cell * scale, Source(artifact.name, f"line {number}"), Scope(run=name))
            if "sync" in name.lower():
                gain.setdefault(bool(_WITHOUT & set(plain_words(name))), cell)
    if len(gain) == 2 and gain[False] > 0:
        yield Fact(run.SYNC_REMOVED_GAIN, 1.0 - gain[True] / gain[False], Source(artifact.name))
