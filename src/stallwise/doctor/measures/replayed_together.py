"""The step after the changes that win most, each made in part or wholly, in every combination: what sliders show.

All of it is replayed here, so that whoever shows it looks numbers up and works nothing out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import product

import numpy as np

from stallwise.doctor.measures._changes import CHANGES, Replays, playable
from stallwise.doctor.measures._device_changes import DEVICE_CHANGES, device_gains
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Table
from stallwise.evidence.timeline import Timeline
from stallwise.physics.sim.replay.change import Change, both, part_of

ORDER = 4
TABLE = "replayed_together"
MOST_CHANGES = 3
WORTH_MOVING = 0.02  # of the step: a slider that changes less is not worth its place
LEVELS = ((0.0, 0.25, 0.5, 0.75, 1.0), (0.0, 0.5, 1.0), (0.0, 1.0))  # how far a change goes, finest first
MOST_PLAYED = 150_000  # pieces of work in all combinations together: some 60 ms


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """One table: how far each change goes, by combination, and the step then."""
    replays = playable(timeline)
    if replays is None:
        return
    index, unchanged = replays.index, replays.unchanged_s
    gains = replays.gains | device_gains(replays)
    best = sorted(gains, key=lambda name: -gains[name][1])[:MOST_CHANGES]
    changes = {name: gains[name] for name in best if gains[name][1] > WORTH_MOVING * unchanged}
    if not changes:
        return
    names = list(changes)
    levels = _levels(len(names), len(replays.graph))
    parts = list(product(levels, repeat=len(names)))
    steps = [_step_s(replays, changes, combination) for combination in parts]
    columns = {name: np.array([p[at] for p in parts]) for at, name in enumerate(names)}
    meta = {
        "unit": index.windows.unit,
        "levels": list(levels),
        "meanings": {name: ((CHANGES | DEVICE_CHANGES)[name].__doc__ or "").strip().rstrip(".") for name in names},
    }
    yield Table(TABLE, {**columns, "step_s": np.array(steps)}, index.source, timeline.scope, meta)


def _levels(changes: int, work: int) -> tuple[float, ...]:
    """As fine as the time allows; on and off at least."""
    return next((found for found in LEVELS if len(found) ** changes * work <= MOST_PLAYED), LEVELS[-1])


def _step_s(replays: Replays, changes: dict[str, tuple[Change, float]], parts: tuple[float, ...]) -> float:
    chosen = [(change, won, part) for (change, won), part in zip(changes.values(), parts, strict=True) if part > 0]
    if sum(parts) == max(parts) and max(parts) in (0.0, 1.0):  # none, or one alone and wholly: played before
        return replays.unchanged_s - sum(won for _, won, _ in chosen)
    return replays.step_s(reduce(both, [part_of(change, part) for change, _, part in chosen]))
