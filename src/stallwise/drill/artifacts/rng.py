"""Chance with a seed: the same seed gives a friend the same incident."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Rng:
    """What a generator draws from."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, *choices: T) -> T:
        """One of these."""
        return self._random.choice(choices)

    def some(self, choices: Sequence[T], count: int) -> list[T]:
        """So many of these, no two alike."""
        return self._random.sample(list(choices), min(count, len(choices)))

    def whole(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return self._random.randint(low, high)

    def between(self, low: float, high: float) -> float:
        """A number from this range."""
        return self._random.uniform(low, high)

    def near(self, value: float, share: float = 0.01) -> float:
        """The value with the noise of a measurement."""
        return value * (1 + share * max(-3.0, min(3.0, self._random.gauss(0, 1))))

    def chance(self, share: float) -> bool:
        """True in this share of draws."""
        return self._random.random() < share
