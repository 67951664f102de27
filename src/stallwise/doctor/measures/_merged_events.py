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
    wanted = _by_weight(row, length, name, first) if len(row) > most else np.arange(len(row))
    while True:
        alone = np.zeros(len(row), bool)
        alone[wanted[:most]] = True
        kept = alone[order]
        begins = _boundaries(row[order], start[order], kept, span / parts if span else 1.0)
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


def _by_weight(row: Ints, length: Floats, name: Ints, first: Bools) -> Ints:
    """Those that explain something, then the longest of each name, then all others; the longest first in each."""
    by_length = np.argsort(-length, kind="stable")
    each = row[by_length] * (int(name.max(initial=0)) + 1) + name[by_length]
    leads = np.zeros(len(row), bool)
    leads[np.unique(each, return_index=True)[1]] = True  # the first of each name is its longest
    turn = np.where(first[by_length], 0, np.where(leads, 1, 2))
    return by_length[np.argsort(turn, kind="stable")]


def _boundaries(row: Ints, start: Floats, kept: Bools, width_s: float) -> Bools:
    """Where a new box begins: at another row, at another part of the step, before and after an event of its own."""
    if not len(row):
        return np.zeros(0, bool)
    part = np.floor(start / width_s)
    new = (np.diff(row) != 0) | (np.diff(part) != 0) | kept[1:] | kept[:-1]
    return np.concatenate(([True], new))
