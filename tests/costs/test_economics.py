"""Goodput, checkpoint intervals, money and energy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.errors import BadRequest
from stallwise.physics.costs.economics import (
    Checkpoint,
    Reliability,
    best_interval_s,
    cost_per_useful_hour,
    daly_interval_s,
    energy_joule,
    goodput,
    storage_for_overhead,
    stranded_share,
    wall_ratio,
    young_interval_s,
)
from stallwise.physics.specs.cluster import cluster_of
from stallwise.planner.cost import CostQuestion, answer_cost

HOUR = 3600.0


def test_young_and_daly_by_hand() -> None:
    # One minute of checkpoint, a failure a day: sqrt(2 x 60 x 86400) = 3220 s; Daly takes the minute off again.
    assert young_interval_s(60, 86400) == pytest.approx(3219.94, abs=0.1)
    assert daly_interval_s(60, 86400) == pytest.approx(3219.94 * (1 + 0.018634 / 3 + 0.000347 / 9) - 60, abs=0.5)


@given(st.floats(0.1, 600), st.floats(600, 1e6))
def test_daly_is_within_a_percent_of_the_numeric_best(checkpoint_s: float, mtbf_s: float) -> None:
    reliability = Reliability(1, mtbf_gpu_s=mtbf_s, restart_s=0, detect_s=0)
    if checkpoint_s > mtbf_s / 4:
        return
    best = wall_ratio(best_interval_s(reliability, checkpoint_s), checkpoint_s, reliability)
    daly = wall_ratio(daly_interval_s(checkpoint_s, mtbf_s), checkpoint_s, reliability)
    assert best <= daly * (1 + 1e-9)
    assert daly <= best * 1.01


def test_llama_3_reports_above_ninety_percent_and_so_do_we() -> None:
    # arXiv 2407.21783: 419 unexpected interruptions in 54 days on 16,384 GPUs, effective training time above 90%.
    result = goodput(Reliability(16384), Checkpoint(5.68e12, 200e9, asynchronous=True, gpus=16384))
    assert result.failures_per_day == pytest.approx(419 / 54, rel=0.1)
    assert 0.90 <= result.goodput_share <= 0.95


@given(st.integers(1, 100_000), st.floats(1e9, 1e13), st.floats(1e9, 1e12), st.booleans())
def test_the_shares_of_paid_time_add_up(gpus: int, size: float, storage: float, asynchronous: bool) -> None:
    result = goodput(Reliability(gpus), Checkpoint(size, storage, asynchronous, gpus=gpus))
    total = result.goodput_share + result.checkpoint_share + result.lost_work_share + result.down_share
    assert 0 <= result.goodput_share <= 1
    assert total == pytest.approx(1, abs=1e-6) or result.lost_work_share == 0


@given(st.integers(2, 50_000))
def test_more_gpus_never_raise_goodput_and_asynchronous_never_lowers_it(gpus: int) -> None:
    size, storage = 1e12, 50e9
    more = goodput(Reliability(gpus), Checkpoint(size, storage, gpus=gpus)).goodput_share
    fewer = goodput(Reliability(gpus // 2), Checkpoint(size, storage, gpus=gpus // 2)).goodput_share
    assert more <= fewer
    overlapped = goodput(Reliability(gpus), Checkpoint(size, storage, asynchronous=True, gpus=gpus)).goodput_share
    assert overlapped >= more


def test_an_asynchronous_write_cannot_lap_itself() -> None:
    with pytest.raises(BadRequest):
        goodput(Reliability(64), Checkpoint(1e12, 1e9, asynchronous=True, gpus=64), interval_s=60)


def test_a_useful_hour_costs_more_than_a_paid_one() -> None:
    assert cost_per_useful_hour(512, 2.5, 0.8) == pytest.approx(1600)


def test_storage_bandwidth_for_one_percent() -> None:
    # 980 GB every half hour within 1%: 18.2 s to write it, 53.9 GB/s.
    assert storage_for_overhead(980e9, 1800, 0.01) == pytest.approx(53.9e9, rel=0.001)


def test_rigid_blocks_strand_what_does_not_fill_them() -> None:
    assert stranded_share((8, 8, 4, 2), 8) == pytest.approx(6 / 22)
    assert stranded_share((8, 8, 4, 2), 1) == 0
    assert stranded_share((), 8) == 0


def test_energy_by_hand() -> None:
    # 8 GPUs at 700 W for an hour: 5.6 kWh at the boards, 1.35 x 1.2 of that at the meter.
    assert energy_joule(8, HOUR, 700) / 3.6e6 == pytest.approx(5.6 * 1.35 * 1.2)


def test_the_answer_has_an_interval_around_its_goodput() -> None:
    answer = answer_cost(CostQuestion(cluster_of("h100", 4096), 980e9))
    found = answer["goodput"]
    assert found["low_share"] < found["goodput_share"] < found["high_share"]
    low, high = answer["money"]["dollar_per_useful_hour_range"]
    assert low < answer["money"]["dollar_per_useful_hour"] < high


def test_nonsense_is_refused() -> None:
    with pytest.raises(BadRequest):
        young_interval_s(0, 100)
    with pytest.raises(BadRequest):
        Reliability(0)
    with pytest.raises(BadRequest):
        answer_cost(CostQuestion(cluster_of("h100", 8), -1))
    with pytest.raises(BadRequest):
        goodput(Reliability(8), Checkpoint(1e9, 1e9), interval_s=-5)
