"""Steps: how many, how long, and whether they are alike."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._report import by_step, step_fact
from stallwise.doctor.measures._step_index import step_index
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.catalog.hardware import GPU_NAME
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Source
from stallwise.evidence.timeline import Timeline

ALIKE = 0.15  # of the median: clocks and caches move steps by less than this
SLOW = 1.5  # times the median: a step that something else happened in
FEW = 0.34  # at most a third of the steps may be slow for the rest to be the normal state


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Facts about the steps of one rank."""
    index = step_index(timeline)
    if not len(index.view):
        yield Note("the trace holds no work of a device: nothing can be said about the GPU", timeline.source)
    lengths = np.diff(index.windows.device)
    yield step_fact(
        index, catalog.STEP_TIME, float(lengths.mean()), low=float(lengths.min()), high=float(lengths.max())
    )
    yield step_fact(index, catalog.STEP_MEDIAN, float(np.median(lengths)))
    yield step_fact(index, catalog.STEP_COUNT, float(len(lengths)))
    yield step_fact(index, catalog.STEP_UNIT, index.windows.unit)
    yield step_fact(index, catalog.STEP_MARKS, index.windows.how)
    yield by_step(index, catalog.STEP_TIME, lengths)
    pattern, period = pattern_of(lengths)
    yield step_fact(index, catalog.STEP_PATTERN, pattern)
    if period:
        yield step_fact(index, catalog.STEP_PERIOD, float(period))
    if index.view.gpu_name:
        yield Fact(GPU_NAME, index.view.gpu_name, Source(timeline.source.file, "deviceProperties"), timeline.scope)


def pattern_of(lengths: NDArray[np.float64]) -> tuple[str, int]:
    """stable, warming up, periodic (with its period), bursty or varying."""
    if len(lengths) < 2:
        return "one step", 0
    usual = float(np.median(lengths))
    if usual <= 0 or np.ptp(lengths) <= ALIKE * usual:
        return "stable", 0
    slow = np.flatnonzero(lengths > SLOW * usual)
    if len(slow) == 1 and slow[0] == 0:
        return "warming up", 0
    if 0 < len(slow) <= max(1, FEW * len(lengths)):
        gaps = np.diff(slow)
        if len(slow) >= 3 and np.ptp(gaps) <= 0.1 * np.median(gaps):
            return "periodic", int(np.median(gaps))
        return "bursty", 0
    return "varying", 0
