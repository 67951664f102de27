"""Moves constants from their priors towards measurements: robust least squares on logarithms, the prior as data.

Runs of one publisher share a scale of their own (its cluster, its software, its way of counting), which is not the
constants' business: residuals of a group are believed to hold a common part of size `between` beside their own noise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDS = 12
STEP = 1e-3  # relative, for the numeric slope
LARGE = 0.25  # residuals beyond 25% pull with constant force, so that one odd run cannot bend the rest


def fit(
    predict_log: Callable[[Array], Array],
    start: Array,
    sigma: Array,
    log_target: Array,
    weight: Array,
    *,
    noise: float = 0.10,
    groups: NDArray[np.int64] | None = None,
    between: float = 0.0,
) -> Array:
    """Positive constants that minimise weighted Huber residuals plus the prior's pull.

    `noise` is what one measurement is believed to scatter by itself; a weight of 1 counts as one independent run.
    """
    theta = np.log(start)
    centre = theta.copy()
    for _ in range(ROUNDS):
        here = predict_log(np.exp(theta))
        slope = np.empty((len(here), len(theta)))
        for j in range(len(theta)):
            moved = theta.copy()
            moved[j] += STEP
            slope[:, j] = (predict_log(np.exp(moved)) - here) / STEP
        residual = log_target - here
        pull = weight * np.minimum(1.0, LARGE / np.maximum(np.abs(residual), 1e-12)) / noise**2
        left = (slope * pull[:, None]).T @ slope + np.diag(1.0 / sigma**2)
        right = (slope * pull[:, None]).T @ residual + (centre - theta) / sigma**2
        if groups is not None and between > 0:
            # Inverse of diag(1/pull) + between^2 11': what a group's common part explains is taken out again.
            for one in np.unique(groups):
                w, s, r = (x[groups == one] for x in (pull, slope, residual))
                share = 1.0 / (1.0 / between**2 + w.sum())
                ws, wr = w @ s, float(w @ r)
                left -= share * np.outer(ws, ws)
                right -= share * ws * wr
        change = np.linalg.solve(left, right)
        theta = theta + np.clip(change, -0.5, 0.5)
        if np.max(np.abs(change)) < 1e-4:
            break
    return np.asarray(np.exp(theta))
