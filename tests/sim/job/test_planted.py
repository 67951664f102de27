"""Faults planted in simulated jobs of every schedule are found and priced; noise is not taken for a fault."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stallwise.physics.sim.job.clocks import align
from stallwise.physics.sim.job.faults import Fault as Found
from stallwise.physics.sim.job.faults import faults_of
from stallwise.physics.sim.job.grid import grid_of
from stallwise.physics.sim.job.replay import Job, NoOrder, job_of
from stallwise.physics.sim.schedules import all_schedules
from tests.sim.job.planted import LABELS, WORKS, Fault, Plan, columns, costs, play, random_plan

NAMED = {"worker": "worker", "stage": "stage", "sequence": "sequence", "link": "link", "gc": "pause"}
PLAIN = Plan("1f1b", 4, 4, 1, 8, 10, 7)


def job(plan: Plan) -> Job:
    grid = grid_of(columns(plan), LABELS, [int(w) for w in WORKS])
    assert grid is not None
    align(grid)
    return job_of(grid)


def beyond_sync(found: list[Found]) -> list[Found]:
    return [f for f in found if f.kind.value != "sync"]


@pytest.mark.parametrize("schedule", sorted(all_schedules()))
@pytest.mark.parametrize("recorded_p2p", [True, False])
def test_a_job_replayed_unchanged_takes_as_long_as_it_took(schedule: str, recorded_p2p: bool) -> None:
    plan = replace(PLAIN, schedule=schedule, chunks=2 if schedule == "interleaved" else 1, recorded_p2p=recorded_p2p)
    assert job(plan).step_s() == pytest.approx(play(plan)[0].mean(), rel=0.005)


def test_faults_are_found_and_priced() -> None:
    """A sample of what bench/planted_ranks.py does with two hundred."""
    first, close, every = 0, 0, 0
    seeds = range(1000, 1020)
    for seed in seeds:
        plan = random_plan(seed, largest=4)
        true, found = costs(plan), faults_of(job(plan))
        got = {f.kind.value: f.cost_s for f in found}
        worst = max(true, key=lambda kind: true[kind])
        first += beyond_sync(found)[0].kind.value == NAMED[worst]
        close += sum(abs(got.get(NAMED[kind], 0.0) / cost - 1) <= 0.1 for kind, cost in true.items())
        every += len(true)
    assert first >= 0.95 * len(seeds)
    assert close >= 0.9 * every


def test_worker_stage_step_and_factor_are_named() -> None:
    plan = replace(PLAIN, steps=30, faults=(Fault("worker", 2, 1, 12, 1.6),))
    worst = faults_of(job(plan))[0]
    assert (worst.workers[0], worst.since) == ((2, 1), 112)
    assert worst.factor == pytest.approx(1.6, rel=0.02)
    plan = replace(PLAIN, faults=(Fault("stage", stage=2, size=1.4),))
    worst = faults_of(job(plan))[0]
    assert (worst.kind.value, worst.stage) == ("stage", 2)
    assert 0 < worst.balanced_s < worst.cost_s


def test_noise_of_equal_workers_is_no_fault() -> None:
    for noise in (0.01, 0.1):
        quiet = job(replace(PLAIN, noise=noise))
        assert all(f.cost_s < 0.02 * quiet.step_s() for f in beyond_sync(faults_of(quiet))), noise


def test_a_lost_worker_and_a_file_that_ends_early_leave_the_rest() -> None:
    plan = replace(PLAIN, faults=(Fault("worker", 2, 1, 0, 1.8),))
    table = columns(plan)
    lost = ((table["replica"] == 3) & (table["stage"] == 0)) | ((table["replica"] == 0) & (table["step"] > 106))
    shuffled = np.random.default_rng(1).permutation(np.flatnonzero(~lost))
    grid = grid_of({name: values[shuffled] for name, values in table.items()}, LABELS, [int(w) for w in WORKS])
    assert grid is not None and grid.left_out
    worst = faults_of(job_of(grid))[0]
    assert worst.workers[0] == (2, 1) and worst.cost_s == pytest.approx(costs(plan)["worker"], rel=0.1)


def test_clocks_that_differ_are_aligned_and_a_slow_worker_is_no_clock() -> None:
    plan = replace(PLAIN, faults=(Fault("worker", 2, 1, 0, 1.8),))
    table, rng = columns(plan), np.random.default_rng(5)
    shift = rng.uniform(-0.4, 0.4, (plan.stages, plan.replicas))
    table["start_s"] = table["start_s"] + shift[table["stage"], table["replica"]]
    grid = grid_of(table, LABELS, [int(w) for w in WORKS])
    assert grid is not None
    clocks = align(grid)
    assert clocks is not None
    left = clocks.offset_s - shift
    assert np.abs(left - left.mean()).max() < 0.005
    found = faults_of(job_of(grid))
    assert found[0].workers[0] == (2, 1) and found[0].cost_s == pytest.approx(costs(plan)["worker"], rel=0.1)
    straight = grid_of(columns(plan), LABELS, [int(w) for w in WORKS])
    assert straight is not None and align(straight) is None


@pytest.mark.parametrize("schedule", sorted(all_schedules()))
@pytest.mark.parametrize("apart_s", [0.0, 0.4])
def test_clocks_of_stages_without_transfers_keep_what_came_before_what(schedule: str, apart_s: float) -> None:
    """Microbatches of V-shaped and bidirectional schedules pass the stages both ways."""
    plan = replace(PLAIN, schedule=schedule, chunks=2 if schedule == "interleaved" else 1, recorded_p2p=False)
    table = columns(plan)
    keep = np.isin(table["label"], [0, 1, 2])  # nothing but passes
    table = {name: values[keep] for name, values in table.items()}
    table["start_s"] = table["start_s"] + apart_s * (table["stage"] == 2)
    grid = grid_of(table, LABELS, [int(w) for w in WORKS])
    assert grid is not None
    clocks = align(grid)
    if not apart_s:
        assert clocks is None
        return
    assert clocks is not None
    left = clocks.offset_s[:, 0] - apart_s * (np.arange(plan.stages) == 2)
    assert np.abs(left - left.mean()).max() < 0.1 * apart_s


def test_times_that_no_job_has_are_refused_or_survived() -> None:
    table = columns(PLAIN)
    table["start_s"] = np.random.default_rng(3).uniform(0, 1, len(table["start_s"]))
    grid = grid_of(table, LABELS, [int(w) for w in WORKS])
    assert grid is not None
    try:
        replayed = job_of(grid).step_s()
    except NoOrder:
        return
    assert np.isfinite(replayed)
