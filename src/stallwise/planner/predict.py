"""One run's step time with its interval: the door through which validation, calibration and plans ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stallwise.physics.costs.constants import NAMES, Array
from stallwise.physics.costs.fitted import constants
from stallwise.physics.costs.published_kin import Kin
from stallwise.physics.costs.spread import Doubt, doubt_of
from stallwise.physics.costs.step import Step, time_step
from stallwise.physics.costs.work import Work
from stallwise.planner.knobs import Settings, settings_of
from stallwise.planner.runs import Run

TIMES = np.array([float(name not in ("hidden", "jitter")) for name in NAMES])  # those that scale seconds
# How far one cluster lies from the mean of all, as a standard deviation of each logarithm: compute little, network and
# host much. Taken where a step of one of 159 published clusters predicts its others best.
OWN_SIGMA = {
    "products": 0.05, "attention": 0.15, "memory": 0.2, "experts": 0.3, "messages": 0.5, "launch": 0.5, "hidden": 0.2,
    "jitter": 0.0,
}  # fmt: skip
COMMON_SIGMA = 0.08  # of all times together: clocks, power, software that nobody names
NOISE_SHARE = 0.8  # of the scatter within publishers that one step is believed to have
ODD_GAP = 0.25  # of the logarithm: beyond it a step is believed less the further it lies
ROUNDS, SLOPE = 3, 1e-3


@dataclass(frozen=True)
class Predicted:
    """A step's seconds, its 90% interval, where they go, and what the interval is made of."""

    seconds: float
    low_s: float
    high_s: float
    parts: dict[str, float]
    doubt: Doubt


@dataclass(frozen=True)
class MeasuredStep:
    """A step of one's own: what it did, in every way that may be meant, and how long it took."""

    work: Work
    weights: Array
    seconds: float
    noise_factor: float = 1.0  # how many times noisier it is for the run asked about: another model, type or card


def asked(run: Run, values: Array | None = None) -> tuple[Run, Settings]:
    """The run with its likeliest setting, and all settings it may have had."""
    settings = settings_of(run, constants() if values is None else values)
    i = settings.likeliest
    return replace(run, layout=settings.layouts[i], recipe=settings.recipes[i]), settings


def mixed_log_s(settings: Settings, values: Array) -> tuple[float, float]:
    """Mean and spread of the logarithm of seconds over all settings."""
    logs = np.log(time_step(settings.work, values).total)
    mean = float(settings.weights @ logs)
    return mean, float(np.sqrt(max(float(settings.weights @ (logs - mean) ** 2), 0.0)))


def predict(
    run: Run, settings: Settings, values: Array | None = None, *, left: float | None = None, kin: Kin | None = None
) -> Predicted:
    """Times one run; `left` is what steps of its own cluster, which moved `values`, leave of the doubt between clusters.

    Without it, `kin` is what others with its framework and cards say.
    """
    values = constants() if values is None else values
    mean, spread = mixed_log_s(settings, values)
    doubt = doubt_of(run.model, run.cluster, run.recipe, knobs=spread, calibrated=left is not None)
    if left is not None:
        doubt = replace(doubt, between=left)
    elif kin is not None:
        mean += kin.log_ratio
        doubt = replace(doubt, between=kin.between)
    seconds = float(np.exp(mean))
    i = settings.likeliest
    step = time_step(settings.work.take(np.array([i])), values)
    return Predicted(seconds, seconds / doubt.factor, seconds * doubt.factor, parts_of(step, 0), doubt)


def parts_of(step: Step, i: int) -> dict[str, float]:
    """Seconds by name for one layout, the ones that matter."""
    return {name: float(values[i]) for name, values in step.parts().items() if abs(values[i]) > 1e-12}


def calibrated(steps: Sequence[MeasuredStep], within: float, start: Array | None = None) -> Array:
    """Constants moved by measured steps of one cluster: each mechanism takes as much of the gap as its own scatter and its
    share of the step explain, so that a slow network is not charged to products."""
    base = constants() if start is None else start
    ways = np.vstack([np.eye(len(NAMES)), TIMES])  # each constant alone, and all times together
    prior = np.square([*(OWN_SIGMA[name] for name in NAMES), COMMON_SIGMA])
    noise = np.array([NOISE_SHARE * within * step.noise_factor for step in steps])
    moved = np.zeros(len(ways))
    for _ in range(ROUNDS):
        here = base * np.exp(moved @ ways)
        log_s = np.array([_log_s(step, here) for step in steps])
        slope = np.array([[(_log_s(s, here * np.exp(SLOPE * way)) - x) / SLOPE for way in ways]
                          for s, x in zip(steps, log_s, strict=True)])  # fmt: skip
        gap = np.log([step.seconds for step in steps]) - log_s + slope @ moved
        odd = np.maximum(np.abs(gap) / ODD_GAP, 1.0)  # what no cluster does is a stall, or another run than stated
        moved = prior * (slope.T @ np.linalg.solve(slope * prior @ slope.T + np.diag(noise * odd) ** 2, gap))
    return np.asarray(base * np.exp(moved @ ways))


def _log_s(step: MeasuredStep, values: Array) -> float:
    return float(step.weights @ np.log(time_step(step.work, values).total))


def left_between(steps: Sequence[MeasuredStep], between: float, within: float) -> float:
    """What measured steps leave of the doubt between clusters."""
    noise = sum(1 / (within * step.noise_factor) ** 2 for step in steps)
    return float(between / np.sqrt(1 + between**2 * noise))
