"""Moves constants from their priors towards measurements: robust least squares on logarithms, the prior as data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDS = 12
STEP = 1e-3  # relative, for the numeric slope
LARGE = 0.15  # residuals beyond 15% pull with constant force, so that one odd run cannot bend the rest


def fit(
    predict: Callable[[Array], Array],
    start: Array,
    sigma: Array,
    log_target: Array,
    weight: Array,
    *,
    noise: float = 0.08,
) -> Array:
    """Positive constants that minimise weighted Huber residuals of log(predict) plus the prior's pull.

    `noise` is what one measurement is believed to scatter by itself; a weight of 1 counts as one independent run.
    """
    theta = np.log(start)
    centre = theta.copy()
    for _ in range(ROUNDS):
        here = np.log(predict(np.exp(theta)))
        slope = np.empty((len(here), len(theta)))
        for j in range(len(theta)):
            moved = theta.copy()
            moved[j] += STEP
            slope[:, j] = (np.log(predict(np.exp(moved))) - here) / STEP
        residual = log_target - here
        pull = weight * np.minimum(1.0, LARGE / np.maximum(np.abs(residual), 1e-12)) / noise**2
        left = (slope * pull[:, None]).T @ slope + np.diag(1.0 / sigma**2)
        right = (slope * pull[:, None]).T @ residual + (centre - theta) / sigma**2
        change = np.linalg.solve(left, right)
        theta = theta + np.clip(change, -0.5, 0.5)
        if np.max(np.abs(change)) < 1e-4:
            break
    return np.asarray(np.exp(theta))
