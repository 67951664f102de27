"""The host's own clock: recorded time with some of it taken out, and without the time it only waited."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(slots=True, eq=False)
class HostClock:
    """A piecewise linear map from recorded time to the host's own working time."""

    at_s: Floats  # moments of the recording, rising
    taken_s: Floats  # taken out up to each

    def own(self, time_s: Floats) -> Floats:
        """How much the host itself has worked at these moments."""
        if not len(self.at_s):
            return time_s.copy()
        return time_s - np.interp(time_s, self.at_s, self.taken_s)


def waited_until(time_s: Floats, wait_s: Floats, waited_s: Floats) -> Floats:
    """How much the host has only waited up to these moments."""
    at, total = _summed(wait_s, waited_s)
    return np.interp(time_s, at, total) if len(at) else np.zeros(len(time_s))


def _summed(wait_s: Floats, waited_s: Floats) -> tuple[Floats, Floats]:
    """Begins and ends of the waits, and what was waited up to each."""
    at = np.empty(2 * len(wait_s))
    at[0::2], at[1::2] = wait_s, wait_s + waited_s
    if len(at):
        at = np.maximum.accumulate(at)
    return at, np.repeat(np.concatenate(([0.0], np.cumsum(at[1::2] - at[0::2]))), 2)[1:-1]


def clock_of(
    points_s: Floats, cost_s: Floats, wait_s: Floats, waited_s: Floats, least_left: float, owing: bool = False
) -> HostClock:
    """Takes a cost out of each stretch between two points, and the waits out wholly.

    `points_s` rise, `cost_s` has one entry for each stretch. At least `least_left` of a stretch's working time stays, since a
    cost may be a mean and no stretch can be shorter than nothing; what a stretch cannot pay, the following ones do where
    it is `owing`.
    """
    waits_at, waits_sum = _summed(wait_s, waited_s)
    if len(points_s) < 2:
        return HostClock(waits_at, waits_sum)
    waited = np.interp(points_s, waits_at, waits_sum) if len(waits_at) else np.zeros(len(points_s))
    room = np.diff(points_s) - np.diff(waited)
    most = (1.0 - least_left) * np.maximum(room, 0.0)
    owed, limit = np.cumsum(cost_s if owing else np.minimum(cost_s, most)), np.cumsum(most)
    taken = np.concatenate(([0.0], limit + np.minimum.accumulate(np.minimum(owed - limit, 0.0))))
    if not len(waits_at):
        return HostClock(points_s, taken)
    # Inside a stretch that also holds a wait the cost lies outside of the wait.
    at = np.concatenate((points_s, waits_at))
    order = np.argsort(at, kind="stable")
    at = at[order]
    waited_all = np.interp(at, waits_at, waits_sum)
    worked = at - waited_all
    return HostClock(at, waited_all + np.interp(worked, points_s - waited, taken))
