"""The statistics: quantiles, error rates under noise and drift, and when to stop."""

from __future__ import annotations

import math
import random

import pytest

from stallwise.experiment import paired


@pytest.mark.parametrize(
    ("share", "freedom", "value"),
    [(0.95, 1, 6.3138), (0.975, 5, 2.5706), (0.995, 3, 5.8409), (0.985, 23, 2.3132), (0.95, 1000, 1.6464)],
)
def test_students_quantiles_are_those_of_the_tables(share: float, freedom: int, value: float) -> None:
    assert paired.student(share, freedom) == pytest.approx(value, abs=2e-4)


def test_the_looks_together_spend_one_in_ten() -> None:
    assert sum(error for _, error in paired.LOOKS) == pytest.approx(0.1)
    assert pytest.approx(0.9) == paired.LEVEL


def trial(truth: float, noise: float, seed: int, heavy: bool = False, slope: float = 0.0) -> paired.Estimate:
    """One trial with a true ratio, stopped as the plan stops it."""
    chance, looks = random.Random(seed), paired.Looks()
    first = False
    while True:
        first = chance.random() < 0.5 if len(looks.differences) % 2 == 0 else not first
        drift = 0.2 * math.sin(len(looks.differences))
        one, other = (chance.gauss(0, noise) * (8 if heavy and chance.random() < 0.05 else 1) for _ in range(2))
        before, after = math.exp(drift + one + slope * first), math.exp(drift + other + slope * (not first))
        looks.add(before, after / truth, changed_first=first)
        if looks.due():
            estimate = looks.look()
            if estimate.clear() or looks.full():
                return estimate


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("noise", [0.002, 0.01, 0.05])
@pytest.mark.parametrize("slope", [0.0, 0.03])
def test_nothing_changed_is_seen_as_a_change_in_six_of_a_hundred_at_most(
    noise: float, heavy: bool, slope: float
) -> None:
    wrong = sum(trial(1.0, noise, seed, heavy, slope).excludes_none() for seed in range(400))
    assert wrong <= 24


def test_a_machine_that_becomes_slower_costs_no_precision() -> None:
    """Three percent a block, twice the noise: fitted, it is gone; as noise it would widen every interval."""
    steady, drifting = ([trial(1.1, 0.015, seed, slope=slope) for seed in range(60)] for slope in (0.0, 0.03))
    assert sum(e.pairs for e in drifting) <= 1.15 * sum(e.pairs for e in steady)
    assert sum(e.low <= 1.1 <= e.high for e in drifting) >= 54


def test_what_lasts_for_many_pairs_and_then_goes_is_no_gain_of_the_change() -> None:
    """A loader that fell behind for six pairs of nine (measured on an H200); the change made by hand won nothing."""
    before = [51.4, 54.5, 51.5, 54.4, 54.1, 53.8, 46.7, 47.7, 46.7]
    after = [46.8, 46.7, 46.8, 46.7, 46.7, 46.8, 46.7, 46.7, 46.7]
    looks = paired.Looks()
    for place, (one, other) in enumerate(zip(before, after, strict=True)):
        looks.add(one, other, changed_first=place % 2 == 1)
    assert looks.look().verdict() == paired.UNSURE


def test_no_gain_above_two_percent_is_an_answer_even_where_it_may_be_slower() -> None:
    assert paired.Estimate(math.log(0.97), 0.04, 9).verdict() == paired.NOTHING
    assert paired.Estimate(math.log(1.0), 0.04, 9).verdict() == paired.UNSURE


def test_a_machine_now_free_and_now_busy_fools_nobody() -> None:
    """Two levels instead of a bell curve: the sides fall the same way by chance, and must not be believed."""

    def two_levels(seed: int) -> paired.Estimate:
        chance, looks = random.Random(seed), paired.Looks()
        while True:
            one, other = ((2.0 if chance.random() < 0.5 else 1.0) * (1 + 0.001 * chance.random()) for _ in range(2))
            looks.add(one, other)
            if looks.due():
                estimate = looks.look()
                if estimate.clear() or looks.full():
                    return estimate

    assert sum(two_levels(seed).excludes_none() for seed in range(400)) <= 40


@pytest.mark.parametrize("truth", [1.02, 1.24, 4.8])
def test_the_truth_lies_in_the_interval_nine_times_out_of_ten(truth: float) -> None:
    found = [trial(truth, 0.02, seed) for seed in range(300)]
    assert sum(e.low <= truth <= e.high for e in found) >= 270


def test_a_large_gain_is_clear_soon_and_a_small_one_takes_its_time() -> None:
    assert trial(4.0, 0.01, 1).pairs == paired.LOOKS[0][0]
    assert trial(1.24, 0.01, 1).verdict() == paired.FASTER
    assert trial(0.8, 0.01, 1).verdict() == paired.SLOWER
    assert trial(1.0, 0.004, 1).verdict() == paired.NOTHING
    assert trial(1.03, 0.3, 1).verdict() == paired.UNSURE
    assert trial(1.03, 0.3, 1).pairs == paired.MOST_PAIRS


def test_a_block_is_as_long_as_the_steps_are_noisy() -> None:
    chance = random.Random(0)
    calm = [0.1 * (1 + 0.002 * chance.random()) for _ in range(24)]
    wild = [0.1 * (1 + 0.5 * chance.random()) for _ in range(24)]
    short, little = paired.block_steps(calm, 0.15, 60.0)
    long, much = paired.block_steps(wild, 0.15, 60.0)
    assert short <= 4 < long and little < 0.01
    assert paired.detectable_ratio(much) < 1.05  # longer blocks make up for it
    assert paired.block_steps(wild, 0.15, 0.5)[0] <= 5  # but never longer than there is time


def test_drift_is_no_noise() -> None:
    rising = [0.1 + 0.001 * n for n in range(24)]
    assert paired.block_steps(rising, 0.0, 60.0)[0] <= 4
