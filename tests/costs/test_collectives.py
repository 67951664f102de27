"""Collectives: identities, monotony, and who wins where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.errors import BadRequest
from stallwise.physics.costs.collectives import Op, bus_factor, collective_time, compare_algorithms, op_named
from stallwise.physics.costs.topology import DGX_A100, DGX_B200, DGX_H100, GB200_NVL72, Fabric, Level

FABRICS = st.sampled_from([DGX_A100, DGX_H100, DGX_B200, GB200_NVL72])
OPS = st.sampled_from(list(Op))
RANKS = st.integers(2, 4096)
SIZES = st.floats(1, 1e12)


@given(OPS, SIZES, RANKS, FABRICS)
def test_an_estimate_lies_inside_its_interval(op: Op, size_bytes: float, ranks: int, fabric: Fabric) -> None:
    estimate = collective_time(op, size_bytes, ranks, fabric)
    assert 0 < estimate.low_s <= estimate.seconds <= estimate.high_s


@given(OPS, SIZES, RANKS, FABRICS, st.floats(1, 10))
def test_more_bytes_never_take_less_time(op: Op, size_bytes: float, ranks: int, fabric: Fabric, more: float) -> None:
    less = collective_time(op, size_bytes, ranks, fabric).seconds
    assert collective_time(op, size_bytes * more, ranks, fabric).seconds >= less * (1 - 1e-9)


@given(OPS, st.floats(1e3, 1e11), st.integers(1, 512), FABRICS)
def test_an_oversubscribed_level_never_helps(op: Op, size_bytes: float, nodes: int, fabric: Fabric) -> None:
    ranks = 2 + nodes * fabric.gpus_per_domain
    narrow = Fabric(
        fabric.link, fabric.gpus_per_domain, in_switch_reduction=fabric.in_switch_reduction, levels=(Level(8, 4.0),)
    )
    wide = Fabric(fabric.link, fabric.gpus_per_domain, in_switch_reduction=fabric.in_switch_reduction)
    assert (
        collective_time(op, size_bytes, ranks, narrow).seconds >= collective_time(op, size_bytes, ranks, wide).seconds
    )


@given(st.floats(1e6, 1e11), st.integers(2, 4096), FABRICS)
def test_gather_and_scatter_move_what_one_all_reduce_moves(size_bytes: float, ranks: int, fabric: Fabric) -> None:
    both = bus_factor(Op.ALL_GATHER, ranks) + bus_factor(Op.REDUCE_SCATTER, ranks)
    assert both == pytest.approx(bus_factor(Op.ALL_REDUCE, ranks))


def test_one_rank_needs_no_time() -> None:
    assert collective_time(Op.ALL_REDUCE, 1e9, 1, DGX_H100).seconds == 0


def test_the_switch_adds_up_at_eight_ranks_and_a_ring_wins_at_two() -> None:
    assert collective_time(Op.ALL_REDUCE, 1e9, 8, DGX_H100).algorithm == "nvls"
    assert collective_time(Op.ALL_REDUCE, 1e9, 2, DGX_H100).algorithm == "ring"
    assert collective_time(Op.ALL_REDUCE, 1e9, 8, DGX_A100).algorithm == "ring"


def test_a_tree_wins_small_messages_over_many_nodes() -> None:
    assert collective_time(Op.ALL_REDUCE, 64e3, 1024, DGX_A100).algorithm == "tree"
    ranked = [e.algorithm for e in compare_algorithms(Op.ALL_REDUCE, 64e3, 1024, DGX_A100)]
    assert ranked.index("tree") < ranked.index("ring")


def test_pat_wins_a_small_gather_with_one_rank_per_node() -> None:
    assert collective_time(Op.ALL_GATHER, 1e6, 256, DGX_H100, per_domain=1).algorithm == "pat"


def test_all_to_all_over_nodes_runs_at_one_network_card() -> None:
    spread = collective_time(Op.ALL_TO_ALL, 1e9, 64, DGX_H100)
    gathered = collective_time(Op.ALL_GATHER, 1e9, 64, DGX_H100)
    assert spread.limit == "network"
    assert spread.bus_byte_per_s < DGX_H100.nic_byte_per_s * 64 / 56  # 8 of 64 parts stay inside
    assert gathered.seconds < spread.seconds / 4


def test_bus_bandwidth_of_nvls_may_exceed_what_a_ring_gets() -> None:
    assert collective_time(Op.ALL_REDUCE, 8e9, 8, DGX_H100).bus_byte_per_s == pytest.approx(477e9, rel=0.1)
    assert collective_time(Op.ALL_GATHER, 8e9, 8, DGX_H100).bus_byte_per_s < 400e9


@pytest.mark.parametrize("text", ["allreduce", "all_reduce", "AllReduce", "all-reduce", "AR"])
def test_names_are_read_as_people_write_them(text: str) -> None:
    assert op_named(text) is Op.ALL_REDUCE


def test_nonsense_is_refused() -> None:
    for op, size, ranks in (("allsum", 1e6, 8), ("allreduce", -1, 8), ("allreduce", 1e6, 0), ("ar", float("nan"), 8)):
        with pytest.raises(BadRequest):
            collective_time(op, size, ranks, DGX_H100)
