"""What depends on what in a recorded run: device work on its streams, hand-overs by the host, and the host's own waits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NOTHING = -1


@dataclass(slots=True, eq=False)
class Graph:
    """Columns of two sorts of things. Work is in order of hand-over; waits are in order of their begin.

    A piece of work starts when the host has handed it over, the work before it on its stream has ended and the work that
    it waits for has ended, each plus its lag. A wait ends when its work has ended. One without work is a wait for somebody
    outside (a loader's process) who goes on at his own pace: it ends as long after the end of his last work as it did, and one whose
    pace is -inf is the moment from which the next counts.
    """

    start_s: Floats
    duration_s: Floats
    turn_s: Floats  # where it comes in the order of things, on the recorded host's clock; rising
    handed_s: Floats  # the moment on the host's clock; -inf where nobody knows
    handed_lag_s: Floats
    stream: Ints
    stream_lag_s: Floats
    after: Ints  # position of the work on another stream, NOTHING where there is none
    after_lag_s: Floats
    wait_s: Floats  # when the host begins to wait
    waited_s: Floats  # how long it did
    wait_for: Ints  # position of the work, NOTHING for somebody outside
    pace_s: Floats  # since his last work was done, for those outside

    def __len__(self) -> int:
        return len(self.start_s)

    def until(self, time_s: float) -> Graph:
        """What was handed over or waited for before this moment of the host: a prefix, so that positions stay."""
        work, waits = int(np.searchsorted(self.turn_s, time_s)), int(np.searchsorted(self.wait_s, time_s))
        return Graph(
            self.start_s[:work], self.duration_s[:work], self.turn_s[:work], self.handed_s[:work],
            self.handed_lag_s[:work], self.stream[:work], self.stream_lag_s[:work], self.after[:work],
            self.after_lag_s[:work], self.wait_s[:waits], self.waited_s[:waits], self.wait_for[:waits],
            self.pace_s[:waits],
        )  # fmt: skip

    def steps_within(self, marks_s: Floats, most: int) -> int:
        """How many whole steps, of those between these marks of the host, hold at most this much work; at least one."""
        ends = np.searchsorted(self.turn_s, marks_s[1:])
        return max(int(np.searchsorted(ends, most, side="right")), 1)


@dataclass(frozen=True, slots=True)
class Lags:
    """What the device needs between two pieces of queued work, and after a hand-over, where nothing else holds it up."""

    queued_s: float = 1.2e-6
    handed_s: float = 6e-6


LATE_S = 5e-6  # longer than any dispatch between queued work: something else held the start up
TOGETHER_S = 20e-6  # a start this soon after an end on another stream waited for it
CLOCK_GRAIN_S = 1e-6  # device clocks are mapped onto the host's with about this error


def usual_lags(start_s: Floats, ready_s: Floats, before_s: Floats) -> Lags:
    """Medians over the work that clearly waited for its stream, and over the work that clearly waited for the host."""
    queued = (before_s - ready_s > 10e-6) & (start_s - before_s < LATE_S) & (start_s >= before_s)
    handed = ready_s - before_s > 10e-6
    usual = Lags()
    return Lags(
        float(np.median((start_s - before_s)[queued])) if queued.sum() >= 8 else usual.queued_s,
        float(np.percentile((start_s - ready_s)[handed], 25)) if handed.sum() >= 8 else usual.handed_s,
    )


def end_before(start_s: Floats, duration_s: Floats, stream: Ints) -> Floats:
    """When the work before each on its stream ended; -inf for the first."""
    order = np.lexsort((np.arange(len(stream)), stream))
    before = np.full(len(stream), NOTHING, np.int64)
    same = stream[order][1:] == stream[order][:-1]
    before[order[1:][same]] = order[:-1][same]
    return np.where(before >= 0, (start_s + duration_s)[np.maximum(before, 0)], -np.inf)


def graph_of(
    start_s: Floats,
    duration_s: Floats,
    turn_s: Floats,
    handed_s: Floats,
    stream: Ints,
    recorded_after: Ints,
    wait_s: Floats,
    waited_s: Floats,
    wait_for: Ints,
    pace_s: Floats,
) -> Graph:
    """Finds the lags with which the recorded times follow from the dependencies; work is given in order of hand-over."""
    before_s = end_before(start_s, duration_s, stream)
    known = np.isfinite(handed_s) & np.isfinite(before_s)
    lags = usual_lags(start_s[known], handed_s[known], before_s[known])
    end_s = start_s + duration_s
    expected = np.maximum(handed_s + lags.handed_s, before_s + lags.queued_s)
    after = np.where(recorded_after >= 0, recorded_after, _waited_for(start_s, end_s, stream, expected))
    after = np.where(after < np.arange(len(after)), after, NOTHING)
    after_s = np.where(after >= 0, end_s[np.maximum(after, 0)], -np.inf)
    # Somebody held each start up: of the hand-over, the stream and the other stream, the one that came last. It keeps the
    # distance that was seen; for the others the usual distance is assumed, or the seen one where that was shorter.
    gap = np.stack((start_s - handed_s, start_s - before_s, start_s - after_s))
    usual = np.array([lags.handed_s, lags.queued_s, lags.queued_s])[:, None]
    binding = np.argmin(gap - usual, axis=0)
    lag = np.minimum(gap, usual)
    columns = np.arange(len(start_s))
    if len(columns):
        lag[binding, columns] = gap[binding, columns]
    lag[~np.isfinite(lag)] = 0.0
    return Graph(
        start_s, duration_s, turn_s, handed_s, lag[0], stream, lag[1], after, lag[2], wait_s, waited_s, wait_for, pace_s
    )  # fmt: skip


def _waited_for(start_s: Floats, end_s: Floats, stream: Ints, expected_s: Floats) -> Ints:
    """For work that starts later than its hand-over and its stream explain: what ended on another stream just before."""
    found = np.full(len(start_s), NOTHING, np.int64)
    late = np.flatnonzero(start_s - expected_s > LATE_S)
    if not len(late) or len(np.unique(stream)) < 2:
        return found
    order = np.argsort(end_s, kind="stable")
    place = np.searchsorted(end_s[order], start_s[late] + CLOCK_GRAIN_S, side="right") - 1
    candidate = order[np.maximum(place, 0)]
    fits = (place >= 0) & (stream[candidate] != stream[late]) & (start_s[late] - end_s[candidate] < TOGETHER_S)
    found[late[fits]] = candidate[fits]
    return found
