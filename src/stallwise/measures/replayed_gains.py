"""What each change wins, by replaying the steps with it; and what less work on the device wins.

The range was chosen on measured fixes on an H200 (bench/gpu/record_clean_and_traced.py and its like), of which it holds two in three.
Launches as graphs keep more: what cannot be captured stays.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.evidence.catalog import gains
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Series
from stallwise.evidence.timeline import Timeline
from stallwise.measures._changes import CHANGES, Replays
from stallwise.measures._report import said
from stallwise.measures._step_book import book_of
from stallwise.sim.replay.change import Change

ORDER = 3
LOW, HIGH = 0.85, 1.2
LOW_OF = {"graphs": 0.67}
WORTH_SAYING = 0.005  # of the step
PARTS = (0.1, 0.25, 0.5, 0.75, 0.9)  # of the device's computing time


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """One fact for each change that wins something, and the curve for device work."""
    book = book_of(timeline)
    if not len(book.view) or not book.view.launched.any():
        return
    replays = Replays(book)
    unchanged = replays.unchanged_s
    if not unchanged > 0:
        return
    for name, make in CHANGES.items():
        change = make(replays)
        won = replays.gain_s(change) if change is not None else 0.0
        if won > WORTH_SAYING * unchanged:
            low = LOW_OF.get(name, LOW) * won
            yield said(book, gains.OF_CHANGE[name], won, low=low, high=min(HIGH * won, unchanged), note="replayed")
    computing = ~book.purposes.crosses_bus & ~book.purposes.communication
    fewer = [replays.gain_s(Change(work=np.where(computing[replays.order], 1.0 - part, 1.0))) for part in PARTS]
    x = np.concatenate(([0.0], PARTS)) * book.mean_s(book.compute)
    yield Series(gains.LESS_DEVICE_WORK, x, np.concatenate(([0.0], fewer)), book.source, timeline.scope)
