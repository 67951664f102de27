"""Matrix products: measured shapes without themselves, limits and growth."""

from __future__ import annotations

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.errors import BadRequest
from stallwise.physics.costs.gemm import TABLE_TYPES, call_s, gemm_time, ideal_s, table
from stallwise.physics.specs.hardware import gpu

H200 = gpu("h200")


def test_left_out_shapes_are_predicted_within_six_percent_in_the_median() -> None:
    errors = [
        abs(
            float(
                call_s(int(r["m"]), int(r["n"]), int(r["k"]), H200, TABLE_TYPES[r["dtype"]], without=i)
                / (float(r["ms"]) * 1e-3)
            )
            - 1
        )
        for i, r in enumerate(table())
    ]
    assert median(errors) < 0.06


def test_a_large_product_is_limited_by_compute_and_a_thin_one_by_memory() -> None:
    assert gemm_time(8192, 8192, 8192, H200).limit == "compute"
    assert gemm_time(4, 57344, 8192, H200).limit == "memory"
    assert gemm_time(64, 256, 256, H200).limit == "call"


def test_an_odd_width_costs_several_times_more() -> None:
    assert float(call_s(4096, 4095, 4095, H200) / call_s(4096, 4096, 4096, H200)) > 4


@given(st.integers(64, 8192), st.integers(64, 8192), st.integers(64, 8192))
def test_no_product_beats_the_peak_and_twice_the_depth_never_takes_less(m: int, n: int, k: int) -> None:
    seconds = float(ideal_s(m, n, k, H200))
    assert 2.0 * m * n * k / seconds <= H200.peak("bf16")
    assert float(ideal_s(m, n, 2 * k, H200)) >= seconds


def test_other_gpus_carry_more_doubt() -> None:
    here, there = gemm_time(4096, 4096, 4096, H200), gemm_time(4096, 4096, 4096, gpu("a100"))
    assert there.high_s / there.seconds > here.high_s / here.seconds
    assert there.seconds > here.seconds


def test_an_impossible_shape_is_refused() -> None:
    with pytest.raises(BadRequest):
        gemm_time(0, 1, 1, H200)


@pytest.mark.parametrize("name, least, most", [("rtx-4090", 0.85, 1.0), ("h20", 0.85, 1.0), ("h100-sxm", 0.6, 0.8)])
def test_narrowed_matrix_units_keep_their_clock_in_long_runs(name: str, least: float, most: float) -> None:
    from stallwise.physics.costs.constants import sustained_ratio
    from stallwise.physics.costs.gemm import matrix_rate

    card = gpu(name)
    share = matrix_rate(card, "bf16") / card.peak("bf16") / sustained_ratio(card.architecture, "bf16")
    assert least < share < most
