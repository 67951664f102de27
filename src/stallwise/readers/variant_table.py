"""A benchmark of variants as a table: one row a variant, with its time (with_sync against without_sync, A against B)."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.readers.shapes._plainly import plain_words as words_of

FORMAT = "table of variants"
_NAMES = {"variant", "mode", "arm", "case", "setting", "setup", "version", "run"}
_SCALE = {"us": 1e-6, "ms": 1e-3, "ns": 1e-9, "s": 1.0, "seconds": 1.0, "sec": 1.0}
_STEPPING = {"step", "iter", "iteration", "it", "batch", "time", "forward"}


def recognises(name: str, head: bytes) -> bool:
    """A first column of names and a column of times."""
    columns = head[:4096].split(b"\n", 1)[0].decode("utf-8", "replace").strip().split(",")
    return len(columns) >= 2 and "_".join(words_of(columns[0])) in _NAMES and _time_column(columns) is not None


def _time_column(columns: list[str]) -> int | None:
    for i, column in enumerate(columns[1:], 1):
        words = set(words_of(column))
        if words & set(_SCALE) and words & _STEPPING:
            return i
    return None


def read(artifact: Artifact) -> Iterator[Item]:
    """The time of each variant, and what leaving out the synchronisation won."""
    rows = [r for r in csv.reader(artifact.lines()) if r]
    columns = rows[0]
    place = _time_column(columns)
    if place is None:
        return
    scale = next(_SCALE[w] for w in words_of(columns[place]) if w in _SCALE)
    times: dict[str, float] = {}
    for number, row in enumerate(rows[1:], 2):
        try:
            times[row[0]] = float(row[place]) * scale
        except (ValueError, IndexError):
            continue
        yield Fact(run.STEP_TIME, times[row[0]], Source(artifact.name, f"line {number}"), Scope(run=row[0]))
    with_sync = [t for n, t in times.items() if "sync" in n.lower() and not _without(n)]
    without = [t for n, t in times.items() if "sync" in n.lower() and _without(n)]
    if with_sync and without and with_sync[0] > 0:
        yield Fact(run.SYNC_REMOVED_GAIN, 1.0 - without[0] / with_sync[0], Source(artifact.name))


def _without(name: str) -> bool:
    words = set(words_of(name))
    return bool(words & {"no", "without", "wo", "off", "removed", "nosync", "async"})
