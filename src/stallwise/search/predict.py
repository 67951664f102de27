"""One run's step time with its interval: the door through which validation, calibration and plans ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stallwise.costs.constants import Array, prior_sigmas
from stallwise.costs.fit import fit
from stallwise.costs.fitted import CALIBRATED_SPREAD, SPREAD, constants
from stallwise.costs.grid import grid_of
from stallwise.costs.step import Step, time_step
from stallwise.costs.work import Work, concatenate, step_work
from stallwise.search.knobs import settle
from stallwise.search.runs import Run

OPEN_KNOB_SPREAD = 1.01  # each thing the author did not say widens the interval by this factor
OWN_NOISE = 0.05  # run-to-run scatter of one user's steps, and what the model misses on any single run


@dataclass(frozen=True)
class Predicted:
    """A step's seconds, its 90% interval and where they go."""

    seconds: float
    low_s: float
    high_s: float
    parts: dict[str, float]


def work_of(run: Run) -> tuple[Run, Work]:
    """The run with every knob settled, and its work."""
    settled = replace(run, layout=settle(run))
    grid = grid_of([settled.layout], settled.workload)
    return settled, step_work(settled.model, settled.cluster, settled.workload, grid, settled.recipe)


def predict(run: Run, work: Work, values: Array | None = None, *, calibrated: bool = False) -> Predicted:
    """Times one run's work."""
    step = time_step(work, constants() if values is None else values)
    seconds = float(step.total[0])
    spread = (CALIBRATED_SPREAD if calibrated else SPREAD)[run.family]
    spread *= OPEN_KNOB_SPREAD ** len(set(run.open_knobs) - {"vp"})
    return Predicted(seconds, seconds / spread, seconds * spread, parts_of(step, 0))


def parts_of(step: Step, i: int) -> dict[str, float]:
    """Seconds by name for one layout, the ones that matter."""
    return {name: float(values[i]) for name, values in step.parts().items() if abs(values[i]) > 1e-12}


def calibrate(works: Sequence[Work], seconds: Sequence[float], start: Array | None = None) -> Array:
    """Constants moved from `start` by a user's own measured steps."""
    base = constants() if start is None else start
    whole = concatenate(list(works))
    target = np.log(np.array(seconds))
    return fit(lambda c: time_step(whole, c).total, base, prior_sigmas(), target, np.ones(len(target)), noise=OWN_NOISE)
