"""Constants moved by one measured step, and what the step says about the job itself."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from stallwise.errors import BadRequest
from stallwise.physics.costs.constants import NAMES, PRIORS, Array
from stallwise.physics.costs.fitted import constants, table
from stallwise.physics.costs.grid import grid_of, recipe_of
from stallwise.physics.costs.spread import doubt_of, family_of
from stallwise.physics.costs.step import Step, time_step
from stallwise.physics.costs.work import step_work
from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.layout import Layout, check
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload
from stallwise.planner.predict import MeasuredStep, calibrated
from stallwise.units import Unit, parse

STATED = 0.6  # of a published row's noise: the owner of a step states its layout, and plans the same model next
NOTABLE = 0.02  # a constant that moved by less than this is not worth a line
MECHANISMS = {
    "compute": ("products", "attention", "vector", "recompute", "optimizer"),
    "network": ("tensor_parallel", "expert_parallel", "context_parallel", "pipeline_messages", "data_parallel"),
    "fixed": ("host",),
}
AXES = {"tp": "tp", "dp": "dp", "cp": "cp", "ep": "ep", "zero": "zero", "mb": "micro_batch"}
EXAMPLE = "step=9.3s,layout=TP8 PP4x2 DP16 ZeRO1 mb1 recompute=selective"


def calibration(
    model: Model, cluster: Cluster, workload: Workload, layout: Layout, seconds: float, recipe: Recipe | None = None
) -> dict[str, Any]:
    """The new constants, which ones moved, the step by mechanism, and whether the run itself looks wrong."""
    check(layout, model, workload, cluster.gpus)
    if not seconds > 0:
        raise BadRequest(f"a step cannot take {seconds:g} s", hint="the seconds of a measured step")
    recipe = recipe or recipe_of(layout)
    work = step_work(model, cluster, workload, grid_of([layout], workload), recipe.at_zero(layout.zero))
    old = constants()
    new = calibrated(
        [MeasuredStep(work, np.ones(1), seconds, STATED)], table()["spread"][family_of(model, recipe)]["within"]
    )
    before, after = time_step(work, old), time_step(work, new)
    spread = doubt_of(model, cluster, recipe).factor
    ratio = seconds / float(before.total[0])
    if ratio > spread:
        verdict = (
            f"this run is {ratio:.2f} times slower than published runs of its kind: look for a stall first "
            "(stallwise diagnose), a calibrated stall stays a stall"
        )
    elif ratio < 1 / spread:
        verdict = f"this run is {1 / ratio:.2f} times faster than published runs of its kind: check the layout given"
    else:
        verdict = "inside the interval: the constants now speak for your machines"
    moved = {
        name: (float(a), float(b), PRIORS[name].meaning)
        for name, a, b in sorted(zip(NAMES, old, new, strict=True), key=lambda t: -abs(t[2] / t[1] - 1))
        if abs(b / a - 1) > NOTABLE
    }
    return {
        "before_s": float(before.total[0]), "after_s": float(after.total[0]), "verdict": verdict, "moved": moved,
        "mechanisms": {name: (_sum(before, parts), _sum(after, parts)) for name, parts in MECHANISMS.items()},
        "constants": {name: float(value) for name, value in zip(NAMES, new, strict=True)},
    }  # fmt: skip


def _sum(step: Step, parts: tuple[str, ...]) -> float:
    return float(sum(step.parts()[name][0] for name in parts))


def from_measured(
    text: str, model: Model, cluster: Cluster, workload: Workload, recipe: Recipe
) -> tuple[Array, dict[str, Any]]:
    """`step=9.3s,layout=TP8 PP4 ...` as constants for the same model, batch and recipe on the same cards."""
    given = dict(part.strip().partition("=")[::2] for part in text.split(",", 1))
    if set(given) != {"step", "layout"}:
        raise BadRequest(f"'{text}' is no measured step", hint=EXAMPLE)
    layout = layout_named(given["layout"], cluster.gpus, recipe)
    found = calibration(
        model, replace(cluster, gpus=layout.gpus), workload, layout, parse(given["step"], Unit.SECOND), recipe
    )
    return np.array([found["constants"][name] for name in NAMES]), found


def layout_named(label: str, gpus: int, recipe: Recipe) -> Layout:
    """A layout as plans print it; what is left out is 1, ZeRO 1 and no recomputation, DP takes the rest."""
    axes: dict[str, Any] = {}
    for word in label.replace("+", " ").lower().split():
        stages, axis, again = (
            re.fullmatch(p, word) for p in (r"pp(\d+)(?:x(\d+))?", r"([a-z]+)(\d+)", r"recompute=([a-z]+)")
        )
        if stages:
            axes["pp"], axes["virtual_stages"] = int(stages[1]), int(stages[2] or 1)
        elif axis and axis[1] in AXES:
            axes[AXES[axis[1]]] = int(axis[2])
        elif again:
            axes["recompute"] = again[1]
        else:
            raise BadRequest(f"'{word}' is no part of a layout", hint=EXAMPLE)
    taken = axes.get("tp", 1) * axes.get("pp", 1) * axes.get("cp", 1)
    axes.setdefault("dp", max(gpus // max(taken, 1), 1))
    return Layout(
        sequence_parallel=axes.get("tp", 1) > 1, precision=recipe.precision, optimizer=recipe.optimizer,
        lora_rank=recipe.lora_rank, schedule=recipe.schedule, offload=recipe.offload, **axes,
    )  # fmt: skip
