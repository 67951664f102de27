"""Combinations of changes: no change is the step, all of one is what it wins alone, and more of a change never costs here."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stallwise.doctor.examine import diagnose
from stallwise.evidence.catalog import gains
from stallwise.physics.sim.replay.change import Change, part_of

TRACE = str(Path(__file__).parents[2] / "examples" / "traces" / "loader_slow" / "trace.json.gz")


def test_the_corners_are_the_replays_that_the_gains_come_from() -> None:
    evidence = diagnose(TRACE).evidence
    table = evidence.table("replayed_together")[0]
    names = list(table.meta["meanings"])
    steps = table.columns["step_s"]
    for name in names:
        others = sum((table.columns[n] for n in names if n != name), start=0.0 * steps)
        line = np.flatnonzero(others == 0.0)
        told = evidence.get(gains.OF_CHANGE[name])
        assert told is not None
        assert np.isclose(steps[0] - steps[line[-1]], told.number)
        assert (np.diff(steps[line]) <= 1e-9).all(), name
    assert steps[-1] <= steps.min() + 1e-9


def test_a_part_of_a_change_takes_its_share_of_stretches_work_and_waits() -> None:
    waits = np.array([True, False, True, True, True])
    half = part_of(Change(np.array([0.0]), np.array([2.0]), waits, np.array([0.2]), 1e-6, slower_part=0.4), 0.5)
    assert half.host_end_s.tolist() == [1.0]
    assert half.waits is not None and half.waits.sum() == 2 and not half.waits[1]
    assert half.work is not None and np.isclose(half.work[0], 0.6)
    assert half.longest_lag_s is None and half.slower_part == 0.2
