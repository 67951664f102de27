"""Where collectives stop scaling, and volumes as identities."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.errors import BadRequest
from stallwise.physics.costs.cliffs import expected_cliffs, explain_jump
from stallwise.physics.costs.collectives import Op
from stallwise.physics.costs.topology import DGX_H100, Level, fabric_of
from stallwise.physics.costs.volumes import sent_bytes, sharding_bytes, tensor_parallel_bytes
from stallwise.physics.specs.cluster import cluster_of


def test_an_all_to_all_falls_off_at_the_domain() -> None:
    cliffs = expected_cliffs(Op.ALL_TO_ALL, 1e9, 64, DGX_H100)
    assert (cliffs[0].below, cliffs[0].above) == (8, 16)
    assert "NVLink domain" in cliffs[0].reason


def test_a_large_all_reduce_has_no_cliff_on_a_full_network() -> None:
    assert expected_cliffs(Op.ALL_REDUCE, 2e9, 4096, DGX_H100) == ()


def test_smooth_series_have_no_jump_and_short_ones_are_refused() -> None:
    assert explain_jump([(64, 0.045), (128, 0.052), (256, 0.061)]) is None
    with pytest.raises(BadRequest):
        explain_jump([(64, 0.045), (128, 0.052)])


def test_a_jump_that_latency_can_explain_is_not_blamed_on_bandwidth() -> None:
    verdict = explain_jump([(8, 100e-6), (16, 150e-6), (32, 1000e-6)])
    assert verdict is not None and verdict.latency_possible


@given(st.floats(1, 1e13), st.integers(2, 100_000))
def test_zero_3_moves_one_and_a_half_times_what_replication_moves(parameters: float, ranks: int) -> None:
    base = sharding_bytes(0, parameters, ranks)
    assert sharding_bytes(1, parameters, ranks) == pytest.approx(base)
    assert sharding_bytes(2, parameters, ranks) == pytest.approx(base)
    assert sharding_bytes(3, parameters, ranks) == pytest.approx(1.5 * base)


def test_accumulation_multiplies_the_traffic_of_zero_2_and_3_only() -> None:
    assert sharding_bytes(1, 1e9, 8, accumulation_steps=4) == sharding_bytes(1, 1e9, 8)
    assert sharding_bytes(3, 1e9, 8, accumulation_steps=4) == pytest.approx(4 * sharding_bytes(3, 1e9, 8))
    assert sharding_bytes(2, 1e9, 8, accumulation_steps=4) > 2 * sharding_bytes(2, 1e9, 8)


def test_sequence_parallelism_moves_the_bytes_of_the_all_reduce_it_splits() -> None:
    split = sent_bytes(Op.REDUCE_SCATTER, 1e6, 8) + sent_bytes(Op.ALL_GATHER, 1e6, 8)
    assert split == pytest.approx(sent_bytes(Op.ALL_REDUCE, 1e6, 8))
    assert tensor_parallel_bytes(80, 8192, 8192, 8, recompute=True) == pytest.approx(
        1.5 * tensor_parallel_bytes(80, 8192, 8192, 8)
    )


def test_a_cluster_becomes_its_fabric() -> None:
    fabric = fabric_of(cluster_of("h100", 1024, pod_gpus=256, oversubscription_ratio=4))
    assert fabric.levels == (Level(256, 4),) and fabric.in_switch_reduction
    assert fabric_of(cluster_of("gb200", 144)).gpus_per_domain == 72
    assert not fabric_of(cluster_of("a100", 64)).in_switch_reduction
    assert fabric_of(cluster_of("mi300x", 64)).in_switch_reduction is False
