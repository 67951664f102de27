"""Change points are found with their steps, and noise is not one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.doctor.measures._robust import best_shift, events, monotony, regularity, rolling_median, slope, spikes
from stallwise.doctor.measures.change_points import from_evidence
from stallwise.evidence.catalog import change, run
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Series, Source

HERE = Source("test")


def facts_of(**series: np.ndarray) -> dict[str, float]:
    evidence = Evidence()
    names = {
        "step": run.STEP_TIME,
        "data": run.DATA_TIME,
        "gpu": run.GPU_MEMORY,
        "host": run.HOST_MEMORY,
        "rate": run.TOKENS_PER_S,
    }
    for name, values in series.items():
        evidence.add([Series(names[name], np.arange(len(values), dtype=float), np.asarray(values, dtype=float), HERE)])
    return {f.quantity.name: f.number for f in from_evidence(evidence) if hasattr(f, "quantity")}


def noisy(n: int, level: float = 1.0, seed: int = 0) -> np.ndarray:
    return level * (1 + 0.01 * np.random.default_rng(seed).standard_normal(n))


@given(st.integers(0, 10_000), st.integers(20, 400))
@settings(max_examples=30, deadline=None)
def test_noise_alone_changes_nothing(seed: int, n: int) -> None:
    found = facts_of(step=noisy(n, 0.5, seed))
    assert not {change.DROP_RATIO.name, change.DRIFT_RATIO.name, change.STALL_PERIOD.name} & found.keys()


@given(st.floats(1.2, 5.0), st.integers(10, 180), st.integers(0, 1000))
@settings(max_examples=30, deadline=None)
def test_a_sudden_drop_is_found_at_its_step(ratio: float, at: int, seed: int) -> None:
    values = noisy(200, 0.4, seed)
    values[at:] *= ratio
    found = facts_of(step=values)
    assert found[change.DROP_RATIO.name] == pytest.approx(ratio, rel=0.05)
    assert abs(found[change.DROP_STEP.name] - at) <= 2


def test_a_drop_of_throughput_is_a_drop_of_speed() -> None:
    values = np.concatenate([noisy(50, 7000.0), noisy(50, 3500.0, 1)])
    assert facts_of(rate=values)[change.DROP_RATIO.name] == pytest.approx(2.0, rel=0.05)


def test_a_drift_is_no_drop() -> None:
    found = facts_of(step=noisy(100) * np.linspace(1, 2, 100))
    assert found[change.DRIFT_RATIO.name] == pytest.approx(2.0, rel=0.1)
    assert change.DROP_RATIO.name not in found


@pytest.mark.parametrize("period", [7, 50, 100])
def test_a_period_is_found(period: int) -> None:
    values = noisy(600)
    values[period // 2 :: period] += 3.0
    found = facts_of(step=values)
    assert found[change.STALL_PERIOD.name] == period
    assert found[change.STALL_REGULARITY.name] > 0.9
    assert found[change.STALL_EXCESS.name] == pytest.approx(3.0, rel=0.05)


def test_one_pause_over_neighbouring_steps_is_one_event() -> None:
    values = noisy(300)
    for at in (60, 160, 260):
        values[at : at + 3] += 1.0
    assert facts_of(step=values)[change.STALL_COUNT.name] == 3


def test_slow_steps_that_wait_for_data_say_so() -> None:
    step, data = noisy(100), noisy(100, 0.001)
    step[::9] += 5.0
    data[::9] += 5.0
    found = facts_of(step=step, data=data)
    assert found[change.STALL_IN_DATA.name] > 0.95
    assert found[run.DATA_SHARE.name] > 0.3
    assert change.FIRST_STEPS_RATIO.name not in found  # step 0 is slow for the same reason as step 9


def test_a_slow_start_is_no_stall() -> None:
    values = noisy(60)
    values[0] = 40.0
    found = facts_of(step=values)
    assert found[change.FIRST_STEPS_RATIO.name] == pytest.approx(40.0, rel=0.05)
    assert change.STALL_COUNT.name not in found


def test_memory_that_rises_to_the_end_grows_and_memory_that_levels_off_does_not() -> None:
    rising = np.linspace(10e9, 30e9, 60)
    warm = np.concatenate([np.linspace(5e9, 20e9, 8), np.full(60, 20e9)])
    assert facts_of(gpu=rising)[change.GPU_MEMORY_FACTOR.name] == pytest.approx(3.0, rel=0.05)
    assert facts_of(gpu=warm)[change.GPU_MEMORY_FACTOR.name] == 1.0
    assert change.HOST_MEMORY_GROWTH.name in facts_of(host=rising)


def test_memory_freed_at_each_epoch_still_grows_inside_it() -> None:
    teeth = np.tile(np.linspace(20e9, 36e9, 30), 4)
    assert facts_of(gpu=teeth)[change.GPU_MEMORY_FACTOR.name] == pytest.approx(1.8, rel=0.05)


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=60))
def test_the_rolling_median_stays_inside_its_data(values: list[float]) -> None:
    array = np.array(values)
    smooth = rolling_median(array)
    assert len(smooth) == len(array)
    assert smooth.min() >= array.min() and smooth.max() <= array.max()


def test_the_parts_behave() -> None:
    assert len(spikes(np.ones(20))) == 0
    assert list(events(np.array([3, 4, 5, 20]))) == [3, 20]
    assert monotony(np.arange(10.0)) == pytest.approx(1.0)
    assert slope(np.arange(10.0), 3 * np.arange(10.0)) == pytest.approx(3.0)
    assert regularity(np.array([0.0, 10.0, 20.0, 30.0])) == (10.0, 1.0)
    shift = best_shift(np.array([1.0] * 10 + [2.0] * 10))
    assert shift is not None and shift.index == 10
