"""A log of hours holds calm and storm: cut into phases of like load, and the worst one that lasts.

A phase is a stretch in which requests in the engine (running and waiting) stay within a factor of each other. The worst
has the longest queue; where nobody ever waits, there is none worse than the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from stallwise.late import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


BAND = 2.0  # requests inside within this factor of the phase's mean (of logarithms) are the same load
LASTING = 5  # samples; fewer are a burst that drains by itself
LASTING_SHARE = 0.02  # of the log
QUEUE_SHARE = 0.2  # of the running requests that wait: below it a queue is the scheduler's breath
DAY_S = 86400.0
EPOCH_S = 1e9  # clocks beyond this count from 1970
LAST_CLOCK_S = 2e11  # and none beyond the year 8000 is one

Column: TypeAlias = "NDArray[np.float64]"


@dataclass(frozen=True)
class Phase:
    """Samples from `first` to `last`, both inside."""

    first: int
    last: int
    start_s: float
    end_s: float
    length: int  # samples of the whole log
    running: float
    waiting: float
    kv_share: float

    @property
    def count(self) -> int:
        """Samples of it."""
        return self.last - self.first + 1

    @property
    def rows(self) -> NDArray[np.bool_]:
        """Which samples are in it."""
        found = np.zeros(self.length, dtype=bool)
        found[self.first : self.last + 1] = True
        return found

    def named(self, clock_s: Any) -> str:
        """As a person would look for it in the log."""
        timed = self.end_s > self.start_s
        where = (
            f"from {_clock(clock_s, self.start_s)} to {_clock(clock_s, self.end_s)}"
            if timed
            else f"in samples {self.first + 1} to {self.last + 1}"
        )
        kv = f", KV at {self.kv_share:.0%}" if self.kv_share == self.kv_share else ""
        return (
            f"{where} ({self.count / self.length:.0%} of the samples), "
            f"{self.running:.0f} run and {self.waiting:.0f} wait{kv}"
        )


def phases(time_s: Column, running: Column, waiting: Column, kv: Column, least: int = 1) -> list[Phase]:
    """Those of at least so many samples, in order."""
    inside = np.where(running == running, running, 0.0) + np.where(waiting == waiting, waiting, 0.0)
    level = np.log(np.maximum(_smooth(inside), 0.5)).tolist()
    band, found, first, total = float(np.log(BAND)), [], 0, level[0] if level else 0.0
    for i in range(1, len(level) + 1):
        if i < len(level) and abs(level[i] - total / (i - first)) <= band:
            total += level[i]
            continue
        if i - first >= least:
            found.append(_phase(first, i - 1, time_s, running, waiting, kv))
        first, total = i, level[i] if i < len(level) else 0.0
    return found


def worst_phase(time_s: Column, running: Column, waiting: Column, kv: Column) -> Phase | None:
    """The phase with the longest lasting queue; None where one phase is all, or nobody waits for long."""
    known = (running == running) & (waiting == waiting)
    if known.sum() < 2 * LASTING:
        return None
    least = max(LASTING, round(LASTING_SHARE * len(running)))
    lasting = phases(time_s, running, waiting, kv, least)
    hurt = [p for p in lasting if p.waiting > max(1.0, QUEUE_SHARE * p.running)]
    if not hurt or len(lasting) < 2:
        return None
    return max(hurt, key=lambda p: (p.waiting, p.count))


def normal_phase(time_s: Column, running: Column, waiting: Column, kv: Column, worst: Phase) -> Phase | None:
    """The lasting phase with the least load beside the worst one: what users saw when all was well."""
    least = max(LASTING, round(LASTING_SHARE * len(running)))
    normal = [
        p
        for p in phases(time_s, running, waiting, kv, least)
        if p.running > 0 and p.running + p.waiting < (worst.running + worst.waiting) / BAND
    ]
    return min(normal, key=lambda p: p.running + p.waiting, default=None)


def _phase(first: int, last: int, time_s: Column, running: Column, waiting: Column, kv: Column) -> Phase:
    part = slice(first, last + 1)
    return Phase(
        first, last, float(time_s[first]), float(time_s[last]), len(running),
        _median(running[part]), _median(waiting[part]), _median(kv[part]),
    )  # fmt: skip


def _smooth(values: Column) -> Column:
    """Median of three: one odd sample starts no phase."""
    if len(values) < 3:
        return values
    inner = np.median(np.stack([values[:-2], values[1:-1], values[2:]]), axis=0)
    return np.concatenate([values[:1], inner, values[-1:]])


def _median(values: Column) -> float:
    known = values[values == values]
    return float(np.median(known)) if len(known) else float("nan")


def _clock(start_s: Any, since_s: float) -> str:
    if not isinstance(start_s, int | float):
        return f"{since_s:.0f} s"
    at = float(start_s) + since_s
    if EPOCH_S <= at < LAST_CLOCK_S:
        return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC")
    whole = round(at % DAY_S)
    return f"{whole // 3600:02d}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
