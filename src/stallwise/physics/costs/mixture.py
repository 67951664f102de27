"""A quantity whose inputs are not all known: its value under each of them, with weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Mixture:
    """Values above 0 with relative weights."""

    values: Any
    weights: Any

    def quantile(self, share: float) -> float:
        """The value up to which this share of the weight lies."""
        order = np.argsort(self.values)
        reached = np.cumsum(self.weights[order])
        return float(self.values[order][np.searchsorted(reached, share * reached[-1])])

    def or_later(self, delays: tuple[float, ...], chance: float) -> Mixture:
        """With this chance one of the delays, alike, comes on top."""
        values = [self.values, *(self.values + delay for delay in delays)]
        weights = [self.weights * (1 - chance), *(self.weights * chance / len(delays) for _ in delays)]
        return Mixture(np.concatenate(values), np.concatenate(weights))

    def interval(self, share: float, spread: tuple[float, float]) -> tuple[float, float]:
        """Around the median: what the inputs leave open and what the formula misses (a ratio each way) are independent."""
        middle = self.quantile(0.5)
        low, high = self.quantile((1 - share) / 2), self.quantile((1 + share) / 2)
        below = math.hypot(math.log(low / middle), math.log(spread[0]))
        above = math.hypot(math.log(high / middle), math.log(spread[1]))
        return middle * math.exp(-below), middle * math.exp(above)


def single(value: float) -> Mixture:
    """Nothing left open."""
    return Mixture(np.array([value]), np.array([1.0]))
