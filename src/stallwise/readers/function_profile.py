"""Host profiles of a training loop by function or by line: cProfile's table (pstats) and line_profiler's.

The calls of backward count the steps. Only work that the host does itself is told: kernels run behind its back, so time in
backward, in the optimizer or in a synchronisation may be the device's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run, stages
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers._cells import count_of
from stallwise.readers._patterns import patterns

FORMAT = "Python function profile"
CAPTURE = "python -m cProfile -s tottime train.py > profile.txt"
_P = patterns("function_profile")
DOES = ("garbage", "save", "evaluation", "data", "optimizer", "backward")  # the first that fits


class Row(NamedTuple):
    """A function or a line: what it does, how often, how long in all."""

    does: str
    calls: float
    seconds: float
    line: int


def recognises(name: str, head: bytes) -> bool:
    """The titles of either table."""
    start = head[:65536]
    return (b"tottime" in start and b"cumtime" in start) or (b"Line #" in start and b"Per Hit" in start)


def read(artifact: Artifact) -> Iterator[Item]:
    """Seconds a step of each kind of host work, and their share of all."""
    rows, total_s = _rows(artifact.lines())
    by_kind: dict[str, Row] = {}
    for row in rows:  # of functions that call each other the outer one holds the others' time
        if row.does not in by_kind or row.seconds > by_kind[row.does].seconds:
            by_kind[row.does] = row
    steps = by_kind["backward"].calls if "backward" in by_kind else 0.0
    if not total_s or not steps:
        return
    yield Fact(run.STEP_TIME, total_s / steps, Source(artifact.name), samples=count_of(steps))
    for kind, row in by_kind.items():
        source, samples = Source(artifact.name, f"line {row.line}"), count_of(row.calls)
        if kind == "data":
            yield Fact(run.DATA_TIME, row.seconds / steps, source, samples=samples)
            yield Fact(run.DATA_SHARE, min(row.seconds / total_s, 1.0), source, samples=samples)
        elif kind == "evaluation":
            yield Fact(stages.EVALUATION, row.seconds / steps, source, samples=samples)
        elif kind == "save":
            yield Fact(stages.CHECKPOINT, row.seconds / steps, source, samples=samples)
        elif kind == "garbage":
            yield Fact(stages.COLLECTION, row.seconds / steps, source, samples=samples)


def _rows(lines: list[str]) -> tuple[list[Row], float]:
    """Rows of either table and the seconds of the whole; of several tables of lines the longest run counts."""
    total_s, unit_s = 0.0, 1e-6
    found: list[Row] = []
    for number, text in enumerate(lines, 1):
        if total := _P["cprofile_total"].search(text) or _P["line_total"].search(text):
            total_s = max(total_s, float(total[1]))
        elif unit := _P["line_unit"].search(text):
            unit_s = float(unit[1])
        elif row := _P["cprofile_row"].match(text):
            found += _row(row[6], float(row[1]), float(row[4]), number)
        elif row := _P["line_row"].match(text):
            found += _row(row[6], float(row[2]), float(row[3]) * unit_s, number)
    return found, total_s


def _row(text: str, calls: float, seconds: float, line: int) -> list[Row]:
    does = next((kind for kind in DOES if _P[kind].search(text)), None)
    return [Row(does, calls, seconds, line)] if does and calls else []
