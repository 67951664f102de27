"""Constants moved by one measured step, and what the step says about the job itself."""

from __future__ import annotations

from typing import Any

from stallwise.costs.constants import NAMES, PRIORS
from stallwise.costs.fitted import constants
from stallwise.costs.grid import grid_of, recipe_of
from stallwise.costs.spread import doubt_of
from stallwise.costs.step import time_step
from stallwise.costs.work import step_work
from stallwise.errors import BadRequest
from stallwise.search.ask import constants_as_dict
from stallwise.search.predict import calibrate
from stallwise.specs.cluster import Cluster
from stallwise.specs.layout import Layout, check
from stallwise.specs.model import Model
from stallwise.specs.workload import Workload

NOTABLE = 0.02  # a constant that moved by less than this is not worth a line


def calibration(model: Model, cluster: Cluster, workload: Workload, layout: Layout, seconds: float) -> dict[str, Any]:
    """The new constants, which ones moved, and whether the run itself looks wrong."""
    check(layout, model, workload, cluster.gpus)
    if not seconds > 0:
        raise BadRequest(f"a step cannot take {seconds:g} s", hint="the seconds of a measured step")
    recipe = recipe_of(layout)
    work = step_work(model, cluster, workload, grid_of([layout], workload), recipe)
    old = constants()
    new = calibrate([work], [seconds])
    before, after = (float(time_step(work, c).total[0]) for c in (old, new))
    spread = doubt_of(model, cluster, recipe).factor
    if seconds > before * spread:
        verdict = (
            f"this run is {seconds / before:.2f} times slower than published runs of its kind: look for a stall first "
            "(stallwise diagnose), a calibrated stall stays a stall"
        )
    elif seconds < before / spread:
        verdict = (
            f"this run is {before / seconds:.2f} times faster than published runs of its kind: check the layout given"
        )
    else:
        verdict = "inside the interval: the constants now speak for your machines"
    moved = {
        name: (float(a), float(b), PRIORS[name].meaning)
        for name, a, b in sorted(zip(NAMES, old, new, strict=True), key=lambda t: -abs(t[2] / t[1] - 1))
        if abs(b / a - 1) > NOTABLE
    }
    return {
        "before_s": before, "after_s": after, "verdict": verdict, "moved": moved, "constants": constants_as_dict(new),
    }  # fmt: skip
