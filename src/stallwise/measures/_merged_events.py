"""Which events of a step are drawn one by one, and how the rest is summed up in blocks.

Those that explain something are kept first, then one of each name, then the longest. What is left lies close together on the
screen anyhow: neighbours of one level of a track become one block with their number, their time and their longest name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FINEST = 2048  # parts of the step in which neighbours are merged: finer than any screen
FEWEST = 16  # of the events that may stand alone this part at least do, before blocks become wider


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """Boxes, each an event or a block of several, in order of track, level and start."""

    first: Ints  # position of its first event in `member`
    count: Ints
    member: Ints  # positions of events, box by box
    longest: Ints  # position of the event that names the box

    def __len__(self) -> int:
        return len(self.first)


def shown_events(
    row: Ints, start: Floats, end: Floats, name: Ints, first: Bools, most_events: int, most_blocks: int
) -> Shown:
    """`row` numbers the rows of boxes (a level of a track); `first` marks events that explain something."""
    order = np.lexsort((start, row))
    length = end - start
    span = float(end.max() - start.min()) if len(start) else 0.0
    most, parts = most_events, FINEST
    while True:
        kept = _kept(row, length, name, first, most)[order]
        begins = _borders(row[order], start[order], kept, span / parts if span else 1.0)
        if int(begins.sum()) <= most_events + most_blocks or parts <= 1:
            break
        # Every event of its own cuts the blocks around it in two: fewer of them leave fewer blocks.
        if most > most_events // FEWEST:
            most = int(most * 0.7)
        else:
            parts //= 2
    begin = np.flatnonzero(begins)
    count = np.diff(np.append(begin, len(order)))
    box = np.repeat(np.arange(len(begin)), count)
    by_length = np.lexsort((-length[order], box))
    longest = order[by_length[begin]] if len(begin) else begin
    return Shown(begin, count, order, longest)


def _kept(row: Ints, length: Floats, name: Ints, first: Bools, most: int) -> Bools:
    kept = np.zeros(len(row), bool)
    if len(row) <= most:
        kept[:] = True
        return kept
    by_length = np.argsort(-length, kind="stable")
    _, one_of_each = np.unique(np.stack((row, name))[:, by_length], axis=1, return_index=True)
    for wanted in (by_length[first[by_length]], by_length[np.sort(one_of_each)], by_length):
        left = most - int(kept.sum())
        new = wanted[~kept[wanted]]
        kept[new[: max(left, 0)]] = True
    return kept


def _borders(row: Ints, start: Floats, kept: Bools, width_s: float) -> Bools:
    """Where a new box begins: at another row, at another part of the step, before and after an event of its own."""
    if not len(row):
        return np.zeros(0, bool)
    part = np.floor(start / width_s)
    new = (np.diff(row) != 0) | (np.diff(part) != 0) | kept[1:] | kept[:-1]
    return np.concatenate(([True], new))
