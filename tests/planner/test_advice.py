"""Advice that engineers would sign, on published recipes and ordinary questions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stallwise.physics.costs.grid import grid_of
from stallwise.physics.costs.published_kin import kin_of
from stallwise.physics.costs.spread import doubt_of
from stallwise.physics.specs.cluster import find_cluster
from stallwise.physics.specs.layout import Layout
from stallwise.physics.specs.model import find_model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload
from stallwise.planner.anchors import anchor_for, published
from stallwise.planner.ranking import EQUAL_SHARE, order, picked_ratio, simplicity
from stallwise.planner.runs import run_of
from stallwise.planner.search import candidates, search
from stallwise.planner.space import Fixed
from stallwise.planner.standing import KNOWN, MEASURED, UNKNOWN


def recipes() -> list[dict[str, str]]:
    """Twenty published runs, no two of one model on one card."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in published():
        run = run_of(row)
        if run.cluster.gpus >= 8 and not run.recipe.lora_rank:
            found.setdefault((run.model.name, run.cluster.gpu.name), row)
    return list(found.values())[:20:4]


def test_published_meshes_stand_near_the_top_and_none_is_called_infeasible() -> None:
    near, rows = 0, recipes()
    for row in rows:
        run = run_of(row)
        recipe = Recipe(precision=run.recipe.precision)
        first = search(run.model, run.cluster, run.workload, recipe)
        axes = run.layout
        pinned = Fixed(tp=axes.tp, pp=axes.pp, cp=axes.cp, ep=axes.ep if axes.ep > 1 else None)
        theirs = search(run.model, run.cluster, run.workload, recipe, fixed=pinned, keep=1).best[0]
        error = doubt_of(run.model, run.cluster, recipe).within
        near += theirs.seconds <= max(c.seconds for c in first.best) * np.exp(error)
        assert run.workload.seq > 8192 or first.best[0].layout.cp == 1
    assert near >= 0.75 * len(rows)


@pytest.mark.parametrize("seq", [2048, 4096, 8192])
@pytest.mark.parametrize("name", ["llama-3-8b", "llama-3-70b", "qwen3-30b-a3b"])
@pytest.mark.parametrize("where", ["8xh100", "h100x256", "a100x64"])
def test_short_sequences_stay_whole_and_tensors_inside_the_node(name: str, where: str, seq: int) -> None:
    cluster = find_cluster(where)
    try:
        best = search(find_model(name), cluster, Workload(seq, 512), keep=1).best[0].layout
    except Exception as error:  # a 70B on eight cards does not fit, whatever the cut
        assert "does not fit" in str(error)
        return
    assert best.cp == 1
    assert best.tp <= cluster.domain


def test_among_equals_the_simplest_comes_first() -> None:
    model, cluster, workload = find_model("llama-3-8b"), find_cluster("h100x64"), Workload(4096, 256)
    grid = grid_of([Layout(tp=2, pp=4, dp=8), Layout(dp=64), Layout(tp=4, dp=16)], workload)
    seconds, needed = np.array([1.0, 1.03, 1.2]), np.array([1e9, 2e9, 1e9])
    ranked = order(model, seconds, needed, np.ones(3, dtype=bool), grid, cluster, workload)
    assert list(ranked) == [1, 0, 2]
    assert simplicity(grid)[1] < simplicity(grid)[0]


def test_a_pick_among_many_is_trusted_less() -> None:
    model, cluster, workload = find_model("llama-3-70b"), find_cluster("h100x512"), Workload(8192, 512)
    plan = search(model, cluster, workload)
    assert 1.0 < plan.picked_ratio < 1.15
    layout = plan.best[0].layout
    alone = candidates(model, cluster, workload, grid_of([layout], workload), Recipe())[0]
    assert alone.seconds == pytest.approx(plan.best[0].seconds)
    assert plan.best[0].high_s == pytest.approx(alone.high_s * plan.picked_ratio)
    assert picked_ratio(np.array([1.0]), np.array([True]), grid_of([layout], workload)) == 1.0


def test_equals_are_called_equal_and_the_choice_says_what_would_change_it() -> None:
    plan = search(find_model("llama-3-70b"), find_cluster("h100x512"), Workload(8192, 512))
    assert plan.equal >= 1
    assert plan.best[0].seconds <= plan.fastest_s * (1 + EQUAL_SHARE) * 1.0001
    assert plan.would_change


def test_a_published_run_of_the_model_is_where_a_plan_starts() -> None:
    row = next(r for r in published() if r["model_name"] == "llama-3.1-405b" and r["gpu_name"] == "h100-sxm")
    run = run_of(row)
    recipe = Recipe(precision=run.recipe.precision)
    anchor = anchor_for(run.model, run.cluster, run.workload, recipe)
    assert anchor is not None
    assert anchor.tokens_per_s_per_gpu > 0 and "405" not in anchor.source
    assert min(1.0, anchor.scale) <= anchor.shrunk_scale <= max(1.0, anchor.scale)
    far = replace(run.workload, seq=run.workload.seq * 8)
    assert anchor_for(run.model, run.cluster, far, recipe) is None
    assert anchor_for(find_model("llama-3-8b"), find_cluster("8xl40s"), run.workload, recipe) is None


def test_unknown_wiring_of_pcie_cards_is_said_in_the_interval() -> None:
    model, workload = find_model("llama-3-8b"), Workload(4096, 64)
    blind = find_cluster("8xl40s")
    told = replace(blind, host_wiring="switch", peer_access=True)
    one, other = (search(model, c, workload, keep=1).best[0] for c in (blind, told))
    assert np.log(one.high_s / one.low_s) > 2 * np.log(other.high_s / other.low_s)
    assert other.seconds <= one.seconds


def test_three_answers_by_how_much_is_known() -> None:
    model, workload = find_model("llama-3-8b"), Workload(4096, 512)
    plan = search(model, find_cluster("64xa100"), workload, Recipe(framework="paddle"), keep=1)
    by_name = {a.name: a for a in plan.answers}
    unknown, known, measured = by_name[UNKNOWN], by_name[KNOWN], by_name[MEASURED]
    assert unknown.half_width_ratio > known.half_width_ratio > measured.half_width_ratio
    assert unknown.seconds and known.seconds and known.seconds > unknown.seconds  # Paddle's publishers were slower
    assert measured.seconds is None
    taken = next(a for a in plan.answers if a.taken)
    assert (plan.best[0].seconds, plan.best[0].low_s, plan.best[0].high_s) == pytest.approx(
        (taken.seconds, taken.low_s, taken.high_s)
    )


def test_kin_are_others_and_a_bag_of_programs_is_no_framework() -> None:
    both = kin_of("dense-bf16", "paddle", "ampere")
    one = kin_of("dense-bf16", "paddle", "ampere", without="FlagPerf")
    assert both is not None and one is not None
    assert one.publishers == ("PaddleNLP",) and one.between > both.between
    assert 0 < one.log_ratio < both.log_ratio  # fewer publishers are believed less
    assert kin_of("dense-bf16", "other", "hopper") is None
    assert kin_of("dense-bf16", "megatron", "no such card") is None
