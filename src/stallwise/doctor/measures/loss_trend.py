"""A loss that rises above chance: ln(vocabulary) is what a model pays that knows nothing, and no training is worse for long.

Rising is judged against the noise of the curve itself: the latest fifth against the lowest, where choosing the lowest of many
needs a larger distance the longer the log is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np

from stallwise.doctor.measures._robust import Values
from stallwise.evidence.catalog import numerics, run, stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact

ORDER = 6
PARTS = 5
FEWEST = 4 * PARTS  # points: fewer leave no part a median
FALSE_ALARM = 0.001  # of a curve that only wavers, over the whole log
JUMPS_TO_SIGMA = 0.954  # the median step from one value to the next, in deviations of the noise
MEDIAN_OF_NORMAL = 1.2533  # deviation of a median over that of a mean


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """The loss over chance, where it rises."""
    vocabulary = evidence.value(stated.VOCAB)
    if not vocabulary > 1:
        return
    for series in evidence.series(run.LOSS):
        values = series.values[np.isfinite(series.values)]
        if len(values) >= FEWEST and rises(values):
            last = float(np.median(values[-len(values) // PARTS :]))
            yield Fact(numerics.LOSS_OVER_CHANCE, last / math.log(vocabulary), series.source, samples=len(values))


def rises(values: Values) -> bool:
    """Whether the end lies above the lowest part by more than the curve's own noise."""
    parts = [float(np.median(part)) for part in np.array_split(values, PARTS)]
    noise = float(np.median(np.abs(np.diff(values)))) / JUMPS_TO_SIGMA
    error = MEDIAN_OF_NORMAL * noise / math.sqrt(len(values) / PARTS) * math.sqrt(2.0)
    return parts[-1] - min(parts) > NormalDist().inv_cdf(1.0 - FALSE_ALARM / len(values)) * error
