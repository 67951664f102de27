"""One measured step corrects compute, network and host apart, not the whole by one factor."""

from __future__ import annotations

import numpy as np
import pytest

import stallwise
from stallwise.errors import StallwiseError
from stallwise.physics.costs.constants import INDEX
from stallwise.physics.costs.fitted import constants
from stallwise.physics.costs.grid import grid_of
from stallwise.physics.costs.step import time_step
from stallwise.physics.costs.work import Work, step_work
from stallwise.physics.specs.cluster import find_cluster
from stallwise.physics.specs.model import find_model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload
from stallwise.planner.calibration import layout_named
from stallwise.planner.predict import MeasuredStep, calibrated

WITHIN = 0.12
RECIPE = Recipe()


def work_of(label: str, cluster: str = "64xh100") -> Work:
    """What a step of this layout does."""
    gpus, workload = find_cluster(cluster), Workload(4096, 256)
    layout = layout_named(label, gpus.gpus, RECIPE)
    return step_work(find_model("llama-3-8b"), gpus, workload, grid_of([layout], workload), RECIPE.at_zero(layout.zero))


@pytest.mark.parametrize(("constant", "ratio"), [("messages", 1.8), ("products", 1.1)])
def test_the_mechanism_that_is_off_takes_the_correction(constant: str, ratio: float) -> None:
    true = constants().copy()
    true[INDEX[constant]] *= ratio
    network_bound, compute_bound = work_of("TP8 PP1 ZeRO1 mb1"), work_of("TP1 PP1 ZeRO3 mb4 recompute=full")
    seen, other = (
        (network_bound, compute_bound) if constant == "messages" else (compute_bound, network_bound)
    )  # measured where the mechanism shows
    measured = float(time_step(seen, true).total[0])
    moved = calibrated([MeasuredStep(seen, np.ones(1), measured)], WITHIN)
    truth = float(time_step(other, true).total[0])
    by_factor = float(time_step(other, constants()).total[0]) * measured / float(time_step(seen, constants()).total[0])
    by_mechanism = float(time_step(other, moved).total[0])
    assert abs(by_mechanism / truth - 1) < abs(by_factor / truth - 1)
    assert abs(by_mechanism / truth - 1) < 0.06


def test_a_step_that_no_cluster_takes_moves_little() -> None:
    work = work_of("TP1 PP1 ZeRO1 mb1")
    usual = float(time_step(work, constants()).total[0])
    moved = calibrated([MeasuredStep(work, np.ones(1), 5 * usual)], WITHIN)
    assert float(time_step(work, moved).total[0]) < 1.6 * usual


def test_plan_takes_a_measured_step() -> None:
    asked = {"seq": 4096, "global_batch": 256, "tp": 2, "zero": 1}
    plain = stallwise.plan("llama-3-8b", "64xh100", **asked)
    label, seconds = plain.best[0].layout.label, plain.best[0].seconds
    own = stallwise.plan("llama-3-8b", "64xh100", **asked, measured=f"step={1.2 * seconds:.4f}s,layout={label}")
    same = next(c for c in own.best if c.layout == plain.best[0].layout)
    assert seconds < same.seconds < 1.25 * seconds
    assert same.high_s / same.low_s < plain.best[0].high_s / plain.best[0].low_s
    assert any("your step" in remark and "network" in remark for remark in own.remarks)


@pytest.mark.parametrize("text", ["step=9s", "layout=TP8", "step=9s,layout=QQ8", "step=-1s,layout=TP8"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(StallwiseError):
        stallwise.plan("llama-3-8b", "64xh100", seq=4096, global_batch=256, measured=text)
