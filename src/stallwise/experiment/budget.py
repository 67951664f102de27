"""What trials may cost, in seconds and in steps, and which part of what is left the next one gets.

A trial ends when it is conclusive, so that a large part costs only those that need it. Equal parts gave ten trials of a short
job too few blocks for any answer (ten programs on an H200, 14 s each: 21 of 39 trials that were begun ended inconclusive).
"""

from __future__ import annotations

import math
from typing import Callable

# Of what is left: for the trial that proves the verdict, for one whose cause the diagnosis names as well, and for any other.
PROOF, NAMED, OTHER = 0.7, 0.5, 0.25


class Budget:
    """Counts from `begin` on."""

    def __init__(self, seconds: float, steps: int, now: Callable[[], float]) -> None:
        self._seconds = seconds
        self._most_steps = steps or math.inf
        self._now = now
        self._until_s = math.inf
        self.steps = 0  # of the job, since it began

    def begin(self) -> None:
        """The first trial begins."""
        self._until_s = self._now() + self._seconds
        self.steps = 0

    def took_s(self) -> float:
        """Since the first trial began."""
        return self._seconds - (self._until_s - self._now()) if self._until_s < math.inf else 0.0

    def over(self) -> bool:
        """Nothing is left."""
        return self._now() > self._until_s or self.steps >= self._most_steps

    def left_s(self, step_s: float) -> float:
        """Seconds, or the time of the steps that are left where that is less."""
        return max(0.0, min(self._until_s - self._now(), (self._most_steps - self.steps) * step_s))

    def part_s(self, trials: int, step_s: float, part: float) -> float:
        """For the next of so many trials: this part of what is left, or an equal one where that is more."""
        return self.left_s(step_s) * max(1.0 / max(1, trials), part)
