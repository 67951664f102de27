"""Closed forms against numbers worked by hand, and their properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.physics.costs.envelope import (
    bubble_share,
    decode_iteration_s,
    kv_budget_bytes,
    layer_activation_bytes,
    ring_bytes_factor,
    score_bytes,
    slowest_over_mean,
    speculative_gain,
    state_bytes,
)

stages = st.integers(2, 64)
many = st.integers(1, 512)


def test_bubbles_by_hand() -> None:
    assert bubble_share(8, 32) == pytest.approx(7 / 39)
    assert bubble_share(8, 32, 2) == pytest.approx(3.5 / 35.5)
    assert bubble_share(8, 8) == pytest.approx(0.467, abs=0.001)  # not 87.5%: that is idle over useful time


@given(stages, many, st.integers(1, 8))
def test_a_balanced_pipeline_needs_no_slow_stage(p: int, m: int, v: int) -> None:
    share = bubble_share(p, m, v)
    assert 0 < share < 1
    assert slowest_over_mean(share, p, m, v) == pytest.approx(1.0)


@given(stages, many)
def test_more_microbatches_and_more_chunks_idle_less(p: int, m: int) -> None:
    assert bubble_share(p, m + 1) < bubble_share(p, m)
    assert bubble_share(p, m, 2) < bubble_share(p, m)


def test_a_ring_hardly_depends_on_its_length() -> None:
    assert ring_bytes_factor(2) == 1.0
    assert ring_bytes_factor(512) / ring_bytes_factor(256) == pytest.approx(1.00196, abs=1e-4)


def test_decode_and_kv_by_hand() -> None:
    assert decode_iteration_s(140e9, 0, 3.35e12) == pytest.approx(0.0418, abs=1e-4)
    assert kv_budget_bytes(8 * 80e9, 70e9) == pytest.approx(506e9)
    assert kv_budget_bytes(80e9, 140e9) == 0.0
    assert speculative_gain(0.7, 4) == pytest.approx(2.773, abs=0.001)


def test_states_do_not_change_when_tp_times_dp_is_constant() -> None:
    assert state_bytes(405e9, 8 * 64) == state_bytes(405e9, 4 * 128) == pytest.approx(12.66e9, rel=0.01)
    assert layer_activation_bytes(8192, 1, 16384, 4, True) == 2 * layer_activation_bytes(8192, 1, 16384, 8, True)
    assert score_bytes(8192, 1, 128, 4) == 2 * score_bytes(8192, 1, 128, 8)
