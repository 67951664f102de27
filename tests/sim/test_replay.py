"""A small host and device by hand: what the replay says must be what arithmetic says."""

from __future__ import annotations

import numpy as np
import pytest

from stallwise.physics.sim.replay.change import Change, both, play
from stallwise.physics.sim.replay.graph import NOTHING, Graph, graph_of
from stallwise.physics.sim.replay.host import clock_of
from stallwise.physics.sim.replay.retime import boundaries, retime

US = 1e-6


def graph(
    start: list[float],
    lasts: list[float],
    handed: list[float],
    stream: list[int] | None = None,
    waits: list[tuple[float, float, int]] | None = None,
    pace: list[float] | None = None,
) -> Graph:
    """Times in microseconds; a wait is (begin, length, position of the work)."""
    waits = waits or []
    column = np.array
    return graph_of(
        column(start) * US, column(lasts) * US, column(handed) * US, column(handed) * US,
        column(stream or [0] * len(start)), np.full(len(start), NOTHING),
        column([w[0] for w in waits]) * US, column([w[1] for w in waits]) * US,
        column([w[2] for w in waits], dtype=np.int64), column(pace or [0.0] * len(waits)) * US,
    )  # fmt: skip


def as_recorded(g: Graph) -> np.ndarray:
    return retime(g, clock_of(np.empty(0), np.empty(0), g.wait_s, g.waited_s, 0.0)).start_s


def test_an_unchanged_run_is_played_as_it_was() -> None:
    g = graph([10, 40, 95, 130], [30, 20, 10, 5], [0, 5, 85, 120], waits=[(6, 54, 1)])
    assert as_recorded(g) == pytest.approx(g.start_s, abs=1e-12)


def test_a_host_that_works_faster_helps_only_where_the_device_waited_for_it() -> None:
    # Launch-bound: kernels of 5 us every 50 us. Half of the host's time goes, so do half of the gaps.
    late = graph([10, 60, 110, 160], [5] * 4, [0, 50, 100, 150])
    points = np.array([0, 50, 100, 150]) * US
    played = retime(late, clock_of(points, np.full(3, 25 * US), late.wait_s, late.waited_s, 0.1))
    assert np.diff(played.start_s) == pytest.approx(25 * US)
    # Device-bound: kernels of 50 us, queued far ahead. Nothing changes.
    queued = graph([10, 61, 112, 163], [50] * 4, [0, 5, 10, 15])
    points = np.array([0, 5, 10, 15]) * US
    played = retime(queued, clock_of(points, np.full(3, 2.5 * US), queued.wait_s, queued.waited_s, 0.1))
    assert played.start_s == pytest.approx(queued.start_s, abs=0.5 * US)


def test_a_wait_ends_with_its_work_and_a_dropped_wait_gives_the_lead_back() -> None:
    # Four launches 10 us apart, a wait for the first, two more launches; the device works 100 us on the first.
    g = graph([5, 111, 121, 131], [100, 5, 5, 5], [0, 106, 116, 126], waits=[(1, 104, 0)])
    assert as_recorded(g) == pytest.approx(g.start_s, abs=1e-12)
    shorter = retime(g, clock_of(np.empty(0), np.empty(0), g.wait_s, g.waited_s, 0.0), g.duration_s * [0.5, 1, 1, 1])
    assert shorter.start_s[1] == pytest.approx(g.start_s[1] - 50 * US, abs=2 * US)
    free = play(g, Change(waits=np.array([True])))
    ends = free.start_s + g.duration_s
    assert ends[-1] < (g.start_s + g.duration_s)[-1] - 5 * US


def test_somebody_outside_keeps_his_pace() -> None:
    """Batches come every 100 us; a host that is done sooner waits longer and wins nothing."""
    waits = [(20.0, 80.0, NOTHING), (120.0, 80.0, NOTHING), (220.0, 80.0, NOTHING)]
    g = graph([105, 205, 305], [5, 5, 5], [100, 200, 300], waits=waits, pace=[-np.inf, 100, 100])
    points = np.array([0, 20, 100, 120, 200, 220, 300]) * US
    faster = retime(g, clock_of(points, np.array([10, 0, 10, 0, 10, 0]) * US, g.wait_s, g.waited_s, 0.1))
    assert np.diff(faster.start_s) == pytest.approx(100 * US, abs=US)
    ready = play(g, Change(waits=np.ones(3, bool)))
    assert np.diff(ready.start_s) == pytest.approx(20 * US, abs=US)


def test_somebody_outside_does_not_wait_for_us() -> None:
    """Two batches were done before they were asked for; the third comes when it came, however late the others were fetched."""
    waits = [(10.0, 0.0, NOTHING), (120.0, 0.0, NOTHING), (140.0, 0.0, NOTHING), (160.0, 40.0, NOTHING)]
    g = graph([205], [5], [200], waits=waits, pace=[-np.inf, 30, 30, 130])
    assert as_recorded(g) == pytest.approx(g.start_s, abs=1e-12)
    points = np.array([0, 10, 120, 140, 160, 200]) * US
    faster = retime(g, clock_of(points, np.array([0, 60, 0, 0, 0]) * US, g.wait_s, g.waited_s, 0.1))
    assert faster.start_s == pytest.approx(g.start_s, abs=US)


def test_work_on_another_stream_is_waited_for() -> None:
    g = graph([10, 115, 130], [100, 10, 10], [0, 5, 8], stream=[0, 1, 1])
    assert g.after[1] == 0
    halved = retime(g, clock_of(np.empty(0), np.empty(0), g.wait_s, g.waited_s, 0.0), g.duration_s * [0.5, 1, 1])
    assert halved.start_s[1] == pytest.approx(65 * US, abs=US)


def test_what_a_stretch_cannot_pay_the_next_one_does() -> None:
    points = np.array([0, 1, 2, 12]) * US
    cost = np.array([2, 2, 0]) * US
    clock = clock_of(points, cost, np.empty(0), np.empty(0), 0.5, owing=True)
    assert clock.own(points)[-1] == pytest.approx(8 * US)
    strict = clock_of(points, cost, np.empty(0), np.empty(0), 0.5)
    assert strict.own(points)[-1] == pytest.approx(11 * US)


def test_two_changes_at_once_win_no_more_than_the_run_has() -> None:
    g = graph([10, 60, 110, 160], [5] * 4, [0, 50, 100, 150])
    one = Change(np.array([0.0]) * US, np.array([40.0]) * US)
    other = Change(np.array([20.0, 60.0]) * US, np.array([45.0, 90.0]) * US)
    marks = np.array([0, 200]) * US
    length = [
        float(np.diff(boundaries(g, (p := play(g, c)), p.start_s + g.duration_s, marks))[0])
        for c in (Change(), one, other, both(one, other))
    ]
    assert length[0] > length[1] > length[3] > 0
    assert length[0] - length[3] == pytest.approx(75 * US, abs=2 * US)


def test_a_long_run_takes_time_in_proportion() -> None:
    from time import process_time

    taken = []
    for count in (20_000, 80_000):
        handed = np.arange(count) * 10.0
        g = graph((handed + 5).tolist(), [4.0] * count, handed.tolist())
        began = process_time()
        as_recorded(g)
        taken.append(process_time() - began)
    assert taken[1] < 12 * max(taken[0], 0.005)


def test_a_change_that_costs_the_host_time_costs_it_only_where_the_host_works() -> None:
    # Launch-bound: the host's 150 us grow by a fifth, the gaps with them; what it waits does not grow.
    late = graph([10, 60, 110, 160], [5] * 4, [0, 50, 100, 150])
    slower = Change(slower_start_s=np.array([0.0]), slower_end_s=np.array([150 * US]), slower_part=0.2)
    assert np.diff(play(late, slower).start_s) == pytest.approx(60 * US)
    waiting = graph([5, 111, 121], [100, 5, 5], [0, 106, 116], waits=[(1, 104, 0)])
    longer = Change(slower_start_s=np.array([1 * US]), slower_end_s=np.array([106 * US]), slower_part=0.5)
    assert play(waiting, longer).start_s[1] == pytest.approx(111.5 * US, abs=0.01 * US)
    # Time that is taken out is not made longer.
    gone = Change(np.array([0.0]), np.array([150 * US]))
    assert play(late, both(gone, slower)).start_s == pytest.approx(play(late, gone).start_s)
