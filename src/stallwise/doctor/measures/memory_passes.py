"""Repeated passes in the record of an allocator: where live memory comes down to after each, which alone shows a leak."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.catalog import change
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact

ORDER = -10
WARM = 1  # passes that leave gradients and optimizer states behind
FEWEST = 3  # floors that make a trend
ALL_ALONG = 0.8  # of the passes end higher than the one before
GREW = 1.05
TURN = 0.3  # of the whole range: a smaller rise or fall is a part of a pass (a layer, a buffer of a collective)


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """How many passes each record holds, the floors after the first and the last, and what grows between them."""
    for series in evidence.series(m.LIVE_BYTES):
        floors = floors_between(series.values)
        if not floors:
            continue
        closed = floors[:-1] or floors  # the record may end within its last pass
        yield Fact(m.PASSES, float(len(floors)), series.source, series.scope)
        yield Fact(m.FIRST_FLOOR, closed[0], series.source, series.scope)
        yield Fact(m.LAST_FLOOR, closed[-1], series.source, series.scope)
        settled = closed[WARM:]
        if len(settled) >= FEWEST and settled[0] > 0:
            rises = np.diff(settled)
            factor = settled[-1] / settled[0] if (rises > 0).mean() >= ALL_ALONG else 1.0
            yield Fact(change.GPU_MEMORY_FACTOR, factor, series.source, series.scope, samples=len(settled))
            if factor > GREW:
                yield Fact(change.GPU_MEMORY_GROWTH, settled[-1] - settled[0], series.source, series.scope)


def floors_between(values: NDArray[np.float64]) -> list[float]:
    """The lowest level after each peak; turns smaller than a part of the whole range are no turns."""
    if not len(values):
        return []
    least = TURN * float(values.max() - values.min())
    if least <= 0:
        return []
    floors: list[float] = []
    low = high = float(values[0])
    rising = False
    for value in values.tolist():
        if rising:
            high = max(high, value)
            if high - value >= least:
                rising, low = False, value
                floors.append(value)
        else:
            low = min(low, value)
            if floors:
                floors[-1] = low
            if value - low >= least:
                rising, high = True, value
    return floors
