"""Step time: identities every layout must keep, and how knobs move it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallwise.physics.costs.constants import INDEX, NAMES, prior_sigmas, prior_values
from stallwise.physics.costs.fitted import constants, constants_without, known_publishers, publisher_of
from stallwise.physics.costs.flops import forward_flops, step_flops
from stallwise.physics.costs.grid import grid_of
from stallwise.physics.costs.step import time_step
from stallwise.physics.costs.work import step_work
from stallwise.physics.specs.cluster import find_cluster
from stallwise.physics.specs.layout import Layout
from stallwise.physics.specs.model import find_model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from robust_fit import fit

EIGHT = find_model("llama-3-8b")


def seconds(layout: Layout, workload: Workload, where: str = "h100x64", recipe: Recipe | None = None) -> float:
    cluster = find_cluster(where)
    work = step_work(EIGHT, cluster, workload, grid_of([layout], workload), recipe or Recipe())
    return float(time_step(work, constants()).total[0])


def test_llama_3_8b_at_8k_spends_a_sixth_more_on_causal_attention_and_seven_percent_on_the_head() -> None:
    """6ND misses both: the full square would be +31% of the layers' FLOPs, half of it causal; the head +7.5%."""
    layers = 2.0 * (EIGHT.parameters().total - EIGHT.parameters().embedding)
    attention = 32 * 2.0 * 8192 * 4096
    head = 2.0 * 4096 * 128256
    assert attention / layers == pytest.approx(0.31 / 2, abs=0.01)
    assert head / layers == pytest.approx(0.075, abs=0.002)
    assert forward_flops(EIGHT, 8192) == pytest.approx(layers + attention + head, rel=0.001)


def test_full_recompute_counts_in_hfu_not_in_mfu() -> None:
    workload = Workload(8192, 64)
    model = step_flops(EIGHT, workload)
    assert step_flops(EIGHT, workload, "hardware", recompute="full") / model == pytest.approx(4 / 3, abs=0.03)
    assert step_flops(EIGHT, workload, "6nd") < model


@settings(max_examples=40, deadline=None)
@given(
    tp=st.sampled_from([1, 2, 4, 8]), pp=st.sampled_from([1, 2, 4, 8]), mb=st.sampled_from([1, 2]),
    zero=st.sampled_from([0, 1, 2, 3]), recompute=st.sampled_from(["none", "selective", "full"]),
    precision=st.sampled_from(["bf16", "fp8"]),
)  # fmt: skip
def test_parts_sum_to_the_total_and_no_step_beats_the_peak(
    tp: int, pp: int, mb: int, zero: int, recompute: str, precision: str
) -> None:
    workload = Workload(4096, 128)
    layout = Layout(tp=tp, pp=pp, dp=64 // (tp * pp), micro_batch=mb, zero=zero, recompute=recompute)
    cluster = find_cluster("h100x64")
    work = step_work(EIGHT, cluster, workload, grid_of([layout], workload), Recipe(precision=precision))
    step = time_step(work, constants())
    total = float(step.total[0])
    assert sum(float(v[0]) for v in step.parts().values()) == pytest.approx(total, rel=0.02)
    assert all(float(v[0]) >= -1e-9 for v in step.parts().values())
    assert step_flops(EIGHT, workload) / total < 64 * cluster.gpu.peak(precision)


def test_twice_the_batch_takes_less_than_twice_the_time_and_more_than_once() -> None:
    layout = Layout(tp=2, pp=4, dp=8)
    once, twice = seconds(layout, Workload(4096, 128)), seconds(layout, Workload(4096, 256))
    assert once < twice < 2 * once


def test_full_recompute_costs_about_a_third_and_selective_little() -> None:
    workload = Workload(4096, 128)
    none = seconds(Layout(tp=2, dp=32), workload)
    full = seconds(Layout(tp=2, dp=32, recompute="full"), workload)
    light = seconds(Layout(tp=2, dp=32, recompute="selective"), workload)
    assert 1.2 < full / none < 1.4
    assert 1.0 < light / none < 1.1


def test_zero_2_pays_for_a_scatter_every_microbatch() -> None:
    """Sharded gradients and one reduction a step do not go together."""
    workload = Workload(4096, 512)
    assert seconds(Layout(dp=64, zero=2), workload) > seconds(Layout(dp=64, zero=1), workload)


def test_interleaving_shrinks_the_bubble() -> None:
    workload = Workload(4096, 64)
    plain = Layout(pp=8, dp=8)
    assert seconds(replace(plain, virtual_stages=4), workload) < seconds(plain, workload)


def test_fp8_is_faster_than_bf16_but_not_twice() -> None:
    workload = Workload(8192, 128)
    layout = Layout(dp=64)
    ratio = seconds(layout, workload) / seconds(layout, workload, recipe=Recipe(precision="fp8"))
    assert 1.1 < ratio < 1.8


def test_an_imbalanced_router_costs_what_its_busiest_rank_waits_for() -> None:
    model, cluster = find_model("qwen3-235b-a22b"), find_cluster("h100x256")
    layout = Layout(pp=8, dp=32, ep=32)
    times = []
    for ratio in (1.0, 1.5):
        workload = Workload(4096, 2048, moe_imbalance_ratio=ratio)
        work = step_work(model, cluster, workload, grid_of([layout], workload), Recipe())
        times.append(float(time_step(work, constants()).total[0]))
    assert times[1] > times[0]


def test_every_publisher_has_a_set_of_constants_that_never_saw_it() -> None:
    assert len(known_publishers()) >= 20
    assert not np.allclose(constants_without("llm-foundry"), constants(), rtol=1e-4)
    assert np.allclose(constants_without("a publisher nobody has seen"), constants())
    assert publisher_of("Megatron-Bridge 26.04") == publisher_of("Megatron-Bridge 25.09")


def test_at_most_eight_constants_and_all_stay_near_their_priors() -> None:
    assert len(NAMES) <= 8
    for name in known_publishers():
        moved = np.abs(np.log(constants_without(name) / prior_values())) / prior_sigmas()
        assert np.all(moved < 2.0), dict(zip(NAMES, moved, strict=True))


def test_a_fit_moves_towards_the_data_and_stays_near_the_prior_without_any() -> None:
    truth = prior_values().copy()
    truth[INDEX["products"]] *= 1.1
    workload = Workload(8192, 128)
    grid = grid_of([Layout(dp=64, micro_batch=m, recompute=r) for m in (1, 2) for r in ("none", "full")], workload)
    work = step_work(EIGHT, find_cluster("h100x64"), workload, grid, Recipe())
    target = np.log(time_step(work, truth).total)
    found = fit(
        lambda c: np.log(time_step(work, c).total), prior_values(), prior_sigmas(), target, np.ones(4), noise=0.01
    )
    assert np.allclose(time_step(work, found).total, time_step(work, truth).total, rtol=0.01)
    assert found[INDEX["experts"]] == pytest.approx(prior_values()[INDEX["experts"]])


def test_what_a_group_shares_does_not_move_the_constants() -> None:
    """A publisher that is slower throughout says something about itself, not about matrix products."""
    workload = Workload(8192, 128)
    grid = grid_of([Layout(dp=64, micro_batch=m, recompute=r) for m in (1, 2) for r in ("none", "full")], workload)
    work = step_work(EIGHT, find_cluster("h100x64"), workload, grid, Recipe())
    target = np.log(time_step(work, prior_values()).total * 1.3)
    groups = np.zeros(4, dtype=np.int64)
    moved = [
        fit(lambda c: np.log(time_step(work, c).total), prior_values(), prior_sigmas(), target, np.ones(4),
            groups=groups, between=between)[INDEX["products"]]
        for between in (0.0, 0.3)
    ]  # fmt: skip
    assert 1.0 < moved[1] < moved[0]


def test_offloading_trades_memory_for_traffic_over_pcie() -> None:
    workload = Workload(8192, 128)
    layout = Layout(tp=2, dp=32)
    kept = seconds(layout, workload)
    assert seconds(layout, workload, recipe=Recipe(offload="optimizer")) > kept
    assert seconds(layout, workload, recipe=Recipe(offload="activations")) > kept


def test_a_narrow_network_between_pods_slows_what_crosses_it() -> None:
    workload = Workload(8192, 512)
    layout = Layout(tp=8, dp=64)
    times = []
    for ratio in (1.0, 8.0):
        cluster = replace(find_cluster("h100x512"), pod_gpus=128, oversubscription_ratio=ratio)
        work = step_work(find_model("llama-3-70b"), cluster, workload, grid_of([layout], workload), Recipe())
        times.append(float(time_step(work, constants()).total[0]))
    assert times[1] > times[0]
