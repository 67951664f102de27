"""Clusters, layouts and workloads: names people type, and the nearest valid value for what cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallwise.errors import BadRequest
from stallwise.physics.specs.cluster import cluster_of, find_cluster
from stallwise.physics.specs.dtype import bytes_per, dtype
from stallwise.physics.specs.layout import Layout, check, nearest_divisor
from stallwise.physics.specs.model import find_model
from stallwise.physics.specs.workload import Workload

SEVENTY = find_model("llama-3-70b")
WORK = Workload(4096, 512)


@pytest.mark.parametrize(
    ("name", "card", "gpus"),
    [
        ("h100x16384", "h100-sxm", 16384),
        ("512xh200", "h200", 512),
        ("2x8xa100", "a100-80gb-sxm", 16),
        ("b200", "b200", 1),
    ],
)
def test_names_of_clusters(name: str, card: str, gpus: int) -> None:
    found = find_cluster(name)
    assert (found.gpu.name, found.gpus) == (card, gpus)


def test_vendors_defaults_around_a_gpu() -> None:
    assert find_cluster("gb200x144").domain == 72
    assert find_cluster("a100x16").nic_byte_per_s == 25e9
    assert find_cluster("h100x16").nodes == 2
    assert cluster_of("h100", 64, nic_byte_per_s=100e9).nic_byte_per_s == 100e9


@pytest.mark.parametrize("name", ["0xh100", "h100x0", "12", "", "h100x99999999999", "2x8"])
def test_clusters_that_cannot_be(name: str) -> None:
    with pytest.raises(BadRequest) as caught:
        find_cluster(name)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"tp": 7}, "8"),
        ({"pp": 128}, "80"),
        ({"dp": 63}, "DP 64"),
        ({"ep": 2}, "EP 1"),
        ({"micro_batch": 0}, "1"),
        ({"micro_batch": 3}, "nearest global batch"),
        ({"recompute": "some"}, "none"),
        ({"optimizer": "adamx"}, "adamw"),
        ({"recompute_modules": ("everything",)}, "mlp_act"),
    ],
)
def test_layouts_that_cannot_be_get_the_nearest(change: dict[str, object], hint: str) -> None:
    base = Layout(tp=8, dp=64)
    with pytest.raises(BadRequest) as caught:
        check(replace(base, **change), SEVENTY, WORK, 512)  # type: ignore[arg-type]
    assert hint in caught.value.hint


def test_interleaving_needs_rounds_of_microbatches() -> None:
    with pytest.raises(BadRequest) as caught:
        check(Layout(tp=8, pp=4, dp=16, virtual_stages=2, micro_batch=1), SEVENTY, Workload(4096, 96), 512)
    assert "8" in caught.value.hint
    check(Layout(tp=8, pp=4, dp=16, virtual_stages=2), SEVENTY, WORK, 512)


def test_experts_must_divide() -> None:
    mixtral = find_model("mixtral-8x7b")
    with pytest.raises(BadRequest) as caught:
        check(Layout(dp=64, ep=16), mixtral, WORK, 64)
    assert "8" in caught.value.hint
    check(Layout(dp=64, ep=8), mixtral, WORK, 64)


@pytest.mark.parametrize("batch", [0, -3, 10**30])
def test_batches_that_cannot_be(batch: int) -> None:
    with pytest.raises(BadRequest):
        Workload(4096, batch)


@given(st.integers(1, 2000), st.integers(1, 2000))
def test_the_nearest_divisor_divides(number: int, wanted: int) -> None:
    assert number % nearest_divisor(number, wanted) == 0


def test_number_formats() -> None:
    assert dtype("torch.bfloat16") == "bf16"
    assert bytes_per("fp8") == 1.0
    with pytest.raises(BadRequest):
        dtype("fp7")


def test_a_label_reads_like_a_board() -> None:
    layout = Layout(tp=8, pp=16, dp=64, virtual_stages=4, ep=1, zero=1, micro_batch=1)
    assert layout.label == "TP8 PP16x4 DP64 ZeRO1 mb1 recompute=none"
    assert "HSDP8" in Layout(dp=64, zero=3, shard_group=8).label
