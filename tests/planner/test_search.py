"""The search: what it considers, what it answers, and what it says to nonsense."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from stallwise.errors import BadRequest, StallwiseError
from stallwise.physics.specs.cluster import find_cluster
from stallwise.physics.specs.model import find_model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload
from stallwise.planner.ask import ask_plan, count
from stallwise.planner.explain import explain
from stallwise.planner.ranking import EQUAL_SHARE
from stallwise.planner.search import evaluate, search
from stallwise.planner.space import Fixed, divisors, enumerate_layouts
from stallwise.surfaces.cli import main

SEVENTY = find_model("llama-3-70b")
CLUSTER = find_cluster("h100x512")
WORK = Workload(8192, 512)


def test_every_layout_uses_every_gpu_and_divides_what_it_cuts() -> None:
    grid = enumerate_layouts(SEVENTY, CLUSTER, WORK)
    assert len(grid) > 10_000
    assert np.all(grid.gpus == 512)
    assert np.all(SEVENTY.heads % grid.tp == 0)
    assert np.all(grid.pp * grid.vp <= SEVENTY.layers)
    assert np.all(grid.micro_batches * grid.mb * grid.dp == WORK.global_batch)
    assert np.all((grid.vp == 1) | (grid.micro_batches % grid.pp == 0))


def test_the_405b_on_16384_h100s_comes_out_near_what_meta_published() -> None:
    """Llama 3 ran 16,384 H100s at 41% MFU with TP 8, PP 16, DP 128 (Grattafiori et al. 2024, table 4)."""
    cluster = find_cluster("h100x16384")
    workload = Workload(8192, 2048)
    plan = search(find_model("llama-3.1-405b"), cluster, workload)
    assert 0.38 < plan.best[0].mfu_share < 0.46
    theirs = search(find_model("llama-3.1-405b"), cluster, workload, fixed=Fixed(tp=8, pp=16, cp=1))
    assert theirs.best[0].mfu_share == pytest.approx(0.41, abs=0.03)
    assert theirs.best[0].low_s < 16_777_216 / (400e12 * 16384 / 2.52e12) < theirs.best[0].high_s


def test_tensor_parallelism_across_nodes_loses_by_its_own_cost() -> None:
    """The rule of thumb is a consequence: nothing forbids TP 16, its messages over the network do."""
    slow = search(SEVENTY, CLUSTER, WORK, fixed=Fixed(tp=16)).best[0]
    quick = search(SEVENTY, CLUSTER, WORK, fixed=Fixed(tp=8)).best[0]
    assert slow.seconds > 1.1 * quick.seconds
    assert slow.parts["tensor_parallel"] > 2 * quick.parts["tensor_parallel"]


def test_the_best_is_the_fastest_that_fits_and_the_frontier_is_not_dominated() -> None:
    plan = search(SEVENTY, CLUSTER, WORK)
    grid = enumerate_layouts(SEVENTY, CLUSTER, WORK)
    seconds, needed = evaluate(SEVENTY, CLUSTER, WORK, grid, Recipe())
    room = 0.94 * CLUSTER.gpu.memory_bytes
    seconds = seconds * (plan.answers[-2].seconds / plan.answers[0].seconds)
    fastest = seconds[(needed <= room) & (grid.cp == 1) & (grid.tp <= 8)].min()
    assert plan.best[0].seconds <= fastest * (1 + EQUAL_SHARE) * 1.0001
    assert plan.fastest_s == pytest.approx(fastest)
    for candidate in plan.frontier:
        better = (seconds < candidate.seconds * 0.9999) & (needed < candidate.memory_bytes * 0.9999)
        assert not np.any(better)


def test_parts_sum_to_the_step_and_the_loser_is_explained() -> None:
    plan = search(SEVENTY, CLUSTER, WORK)
    for candidate in plan.best:
        assert sum(candidate.parts.values()) == pytest.approx(candidate.seconds, rel=0.02)
    assert len(plan.lost) == len(plan.best) - 1
    for other, text in zip(plan.best[1:], plan.lost, strict=True):
        near = abs(other.seconds / plan.best[0].seconds - 1) <= EQUAL_SHARE
        assert text.startswith("equal") if near else text.startswith("+")


def test_the_board_shows_the_numbers_that_were_used() -> None:
    plan = search(SEVENTY, CLUSTER, WORK)
    text = "\n".join(explain(SEVENTY, CLUSTER, WORK, plan.recipe, plan.best[0]))
    assert "70.55 B" in text
    assert f"{plan.best[0].memory_bytes / 2**30:.1f} GiB" in text
    assert f"{plan.best[0].mfu_share:.1%}" in text


def test_a_model_that_cannot_fit_is_refused_with_what_would() -> None:
    with pytest.raises(BadRequest) as caught:
        search(SEVENTY, find_cluster("h100x8"), Workload(4096, 64))
    assert "does not fit" in caught.value.problem
    assert "GPUs" in caught.value.hint


NONSENSE = [
    (["--model", "llama-3-70b", "--cluster", "h100x512", "--tp", "7"], "heads", "8"),
    (["--model", "llama-3-70b", "--cluster", "h100x512", "--pp", "128"], "80 layers", "80"),
    (["--model", "llama-3-70b", "--cluster", "h100x0"], "0 GPUs", "1"),
    (["--model", "llama-3-70b", "--cluster", "h100x512", "--global-batch", "1e30"], "global batch", "10,000,000"),
    (["--model", "llama-3-70b", "--cluster", "h100x512", "--global-batch", "-1"], "global batch", "1"),
    (["--model", "llama-3-70b", "--cluster", "h100x512", "--seq", "0"], "sequence", "1"),
    (["--model", "llama-3-8b", "--cluster", "h100x8", "--ep", "4"], "experts", "1"),
    (["--model", "lama-3-8b", "--cluster", "h100x8"], "no model", "llama-3-8b"),
    (["--model", "llama-3-8b", "--cluster", "h1000x8"], "no GPU", "h100"),
    (["--model", "mixtral-8x7b", "--cluster", "h100x8", "--ep", "3"], "EP 3", "2"),
    (["--model", "llama-3-8b", "--cluster", "h100x8", "--optimizer", "adan"], "optimizer", "adamw"),
]


@pytest.mark.parametrize(("arguments", "problem", "nearest"), NONSENSE)
def test_nonsense_gets_the_nearest_valid_value(arguments: list[str], problem: str, nearest: str) -> None:
    result = CliRunner().invoke(main, ["plan", "train", *arguments])
    error = result.exception
    assert isinstance(error, StallwiseError), result.output
    assert error.exit_code == 2
    assert problem in error.problem
    assert nearest in error.hint


def test_a_vision_config_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"architectures": ["ViTForImageClassification"], "image_size": 224, "patch_size": 16}))
    with pytest.raises(BadRequest, match="vision"):
        ask_plan(str(path), "h100x8", seq=4096, global_batch=64)


def test_json_carries_intervals_memory_and_reasons() -> None:
    result = CliRunner().invoke(
        main, ["plan", "train", "--model", "llama-3-8b", "--cluster", "8xh100", "--json", "--explain"]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    best = found["best"][0]
    assert best["low_s"] < best["seconds"] < best["high_s"]
    assert found["why_the_others_lost"] and found["sensitivity"] and found["explain"]


def test_a_calibrated_run_predicts_itself_and_its_neighbour_more_tightly(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    asked = ["--model", "llama-3-8b", "--cluster", "8xh100", "--seq", "8192", "--global-batch", "128"]
    runner = CliRunner()
    done = runner.invoke(main, ["plan", "calibrate", "--step-time", "14s", *asked, "-o", str(path), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert abs(found["after_s"] / 14 - 1) < 0.6 * abs(found["before_s"] / 14 - 1)
    plan = runner.invoke(main, ["plan", "train", *asked, "--constants", str(path), "--json"])
    best = json.loads(plan.output)["best"][0]
    before = json.loads(runner.invoke(main, ["plan", "train", *asked, "--json"]).output)["best"][0]
    assert best["high_s"] / best["low_s"] < before["high_s"] / before["low_s"]
    assert best["high_s"] / best["low_s"] < 1.75


def test_the_memory_command_names_stages_tensors_and_knobs() -> None:
    arguments = ["plan", "memory", "--model", "llama-3-70b", "--cluster", "h100x512", "--tp", "4", "--pp", "4"]
    result = CliRunner().invoke(main, [*arguments, "--seq", "8192", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert [s["stage"] for s in found["stages"]] == ["first", "last", "middle"]
    assert found["knobs"] and all(k["freed_bytes"] > 0 for k in found["knobs"])
    assert "query, key, value" in found["activation_tensors"]


@pytest.mark.parametrize(("text", "value"), [("512", 512), ("2k", 2000), ("1e3", 1000)])
def test_counts_are_read_as_people_write_them(text: str, value: int) -> None:
    assert count(text, "--global-batch") == value


def test_divisors_are_all_there() -> None:
    assert divisors(12) == [1, 2, 3, 4, 6, 12]
    assert divisors(16384)[-1] == 16384


@pytest.mark.parametrize("virtual", [1, 5])
def test_the_simulated_schedule_agrees_with_the_formula_of_the_search(virtual: int) -> None:
    plan = search(SEVENTY, CLUSTER, WORK, fixed=Fixed(pp=8, virtual_stages=virtual))
    best = plan.best[0]
    assert plan.pipeline is not None
    waits = best.parts["bubble"] + best.parts["imbalance"]
    alone = best.seconds - best.parts["data_parallel"] - best.parts["optimizer"] - best.parts["jitter"]
    assert plan.pipeline.bubble_step_share == pytest.approx(waits / alone, abs=0.04)
