"""What each change wins, by replaying the steps with it; and what less work on the device wins."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._changes import playable
from stallwise.doctor.measures._device_changes import DEVICE_CHANGES, device_gains
from stallwise.doctor.measures._replay_range import won_range_s
from stallwise.doctor.measures._report import step_fact
from stallwise.evidence.catalog import gains
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Series
from stallwise.evidence.timeline import Timeline
from stallwise.physics.costs.gain_doubt import lost_in
from stallwise.physics.sim.replay.change import Change

ORDER = 3
WORTH_SAYING = 0.005  # of the step
PARTS = (0.25, 0.5, 0.75, 0.9)  # of the device's computing time


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """One fact for each change that wins something, and the curve for device work."""
    replays = playable(timeline)
    if replays is None:
        return
    index, unchanged = replays.index, replays.unchanged_s
    won_by = {name: won for name, (_, won) in (replays.gains | device_gains(replays)).items()}
    busy = index.mean_s(index.busy)
    for name, won in won_by.items():
        if won > WORTH_SAYING * unchanged:
            low, high = won_range_s(won, (name,), unchanged, busy)
            yield step_fact(index, gains.OF_CHANGE[name], won, low=low, high=high, note=f"replayed{_may_lose(name)}")
        elif name in DEVICE_CHANGES:
            # The device would be done sooner and only wait longer: that nothing is won is an answer too.
            yield step_fact(
                index, gains.OF_CHANGE[name], 0.0, low=0.0, high=0.0, note="replayed: the host keeps all of it"
            )
    computing = ~index.purposes.crosses_bus & ~index.purposes.communication
    fewer = [replays.gain_s(Change(work=np.where(computing[replays.order], 1.0 - part, 1.0))) for part in PARTS]
    x = np.concatenate(([0.0], PARTS)) * index.mean_s(index.compute)
    yield Series(gains.LESS_DEVICE_WORK, x, np.concatenate(([0.0], fewer)), index.source, timeline.scope)


def _may_lose(change: str) -> str:
    """A change that lost time where it was measured can be negative, whatever a replay says."""
    lost, of = lost_in(change)
    return f"; it lost time in {lost} of {of} measured jobs" if lost else ""
