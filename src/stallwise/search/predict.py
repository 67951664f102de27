"""One run's step time with its interval: the door through which validation, calibration and plans ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stallwise.costs.constants import NAMES, Array, prior_sigmas
from stallwise.costs.fit import fit
from stallwise.costs.fitted import constants, table
from stallwise.costs.known import Kin
from stallwise.costs.spread import Doubt, doubt_of
from stallwise.costs.step import Step, time_step
from stallwise.costs.work import Work, concatenate
from stallwise.search.knobs import Settings, settings_of
from stallwise.search.runs import Run

TIMES = np.array([name not in ("hidden", "jitter") for name in NAMES])  # those that scale seconds
LEFT_TO_CONSTANTS = 0.6  # of each prior's doubt, once the scale has taken its part
OWN_NOISE = 0.05  # run-to-run scatter of one user's steps, and what the model misses on any single run


@dataclass(frozen=True)
class Predicted:
    """A step's seconds, its 90% interval, where they go, and what the interval is made of."""

    seconds: float
    low_s: float
    high_s: float
    parts: dict[str, float]
    doubt: Doubt


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
    run: Run, settings: Settings, values: Array | None = None, *, scale: tuple[float, float] | None = None,
    kin: Kin | None = None,
) -> Predicted:  # fmt: skip
    """Times one run; `scale` is what steps of its own cluster said: ln(measured / predicted), and what is left in doubt.

    Without it, `kin` is what others with its framework and cards say.
    """
    values = constants() if values is None else values
    mean, spread = mixed_log_s(settings, values)
    doubt = doubt_of(run.model, run.cluster, run.recipe, knobs=spread, calibrated=scale is not None)
    if scale is not None:
        mean += scale[0]
        doubt = replace(doubt, between=scale[1])
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


def own_scale(logs: Sequence[float], between: float, within: float) -> tuple[float, float]:
    """What measured steps say about their cluster: the mean of ln(measured / predicted), shrunk by its own doubt."""
    n = len(logs)
    if not n:
        return 0.0, between
    trust = between**2 / (between**2 + within**2 / n)
    return trust * float(np.mean(logs)), between * float(np.sqrt(1 - trust))


def calibrate(works: Sequence[Work], seconds: Sequence[float], start: Array | None = None) -> Array:
    """Constants moved from `start` by a user's own measured steps: one scale of all of them first, each one second."""
    base = constants() if start is None else start
    whole = concatenate(list(works))
    target = np.log(np.array(seconds))
    spread = table()["spread"]["dense-bf16"]
    scale, _ = own_scale(list(target - np.log(time_step(whole, base).total)), spread["between"], spread["within"])
    scaled = np.where(TIMES, base * np.exp(scale), base)
    left = prior_sigmas() * LEFT_TO_CONSTANTS
    return fit(lambda c: np.log(time_step(whole, c).total), scaled, left, target, np.ones(len(target)), noise=OWN_NOISE)
