"""How the job went: its last step at normal speed, and from when on it was slower."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Source, Table
from stallwise.late import np

TABLE = "log.steps"
SLOWER = 1.3  # times the normal step: log stamps of whole seconds and evaluations stay below
STAYS = 0.8  # of the steps after it that are slow, too
BURST = 3.0  # times: the last step of a log may be slow alone
LEAST = 6  # steps, below which nothing is normal


@dataclass(frozen=True, slots=True)
class Progress:
    """One file's steps."""

    table: Table
    good: int  # the row of the last good step
    slow: int | None  # the row of the first slow one
    normal_s: float
    slow_s: float
    seconds: tuple[float, ...]

    @property
    def step(self) -> int:
        """The last good step."""
        return int(self.table.columns["step"][self.good])

    def line(self, row: int) -> Source:
        """Where a row stands."""
        return Source(self.table.source.file, f"line {int(self.table.columns['line'][row])}")

    @property
    def name(self) -> str:
        """The file without its folders."""
        return PurePath(self.table.source.file).name


def progress_of(evidence: Evidence) -> list[Progress]:
    """Of every log with steps, the longest first."""
    found = [_progress(t, evidence) for t in evidence.table(TABLE)]
    return sorted(found, key=lambda p: -len(p.table))


def _progress(table: Table, evidence: Evidence) -> Progress:
    seconds = _seconds(table, evidence)
    last = len(table) - 1
    if len(seconds) < LEAST:
        return Progress(table, last, None, float("nan"), float("nan"), tuple(seconds))
    values = np.array(seconds)
    normal = float(np.nanmedian(values[: max(LEAST, len(values) // 4)]))
    limit = SLOWER * normal
    for at in np.flatnonzero(values > limit):
        after = values[at:]
        stays = len(after) >= 3 and float(np.mean(after > limit)) >= STAYS
        if stays or (at >= last - 1 and values[at] > BURST * normal):
            return Progress(table, max(0, int(at) - 1), int(at), normal, float(np.nanmedian(after)), tuple(seconds))
    return Progress(table, last, None, normal, float("nan"), tuple(seconds))


def _seconds(table: Table, evidence: Evidence) -> list[float]:
    """Of each row's steps: as printed where the log prints them, else by the clock."""
    for series in evidence.series(run.STEP_TIME):
        if series.source.file.split(" ")[0] == table.source.file and len(series.values) == len(table):
            return [float(v) for v in series.values]
    steps, times = table.columns["step"], table.columns["from_s"]
    if len(steps) < 2:
        return []
    between = np.diff(times) / np.maximum(np.diff(steps), 1.0)
    return [float(between[0]), *map(float, between)]
