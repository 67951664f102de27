"""Waits that a timer counts as backward: where gradients are exchanged inside of it, every rank's step looks alike.

In lock step the rank with the longest forward comes last and waits for nobody, so its ratio of backward to forward is that of the
work itself. What the others' backward takes beyond it they wait.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stallwise.doctor.measures._operation_rows import Columns
from stallwise.evidence.operations import COMMUNICATION, Work
from stallwise.physics.sim.job.grid import numbered

LOCK_STEP = 0.02  # of a step: ranks that meet in it differ by no more
UNLIKE = 0.05  # forwards of healthy ranks differ by one to three percent


def without_hidden_waits(columns: Columns, works: Sequence[int]) -> Columns:
    """Durations of the passes themselves; the same columns where nothing is hidden."""
    work = np.array(works)[columns["label"]]
    if np.isin(work, [int(w) for w in COMMUNICATION]).any() or (columns["microbatch"] >= 0).any():
        return columns
    if len(np.unique(columns["stage"])) > 1:
        return columns
    (ranks, rank), (steps, step) = numbered(columns["replica"]), numbered(columns["step"])
    totals = [np.zeros((len(ranks), len(steps))) for _ in range(2)]
    for total, kind in zip(totals, (Work.FORWARD, Work.BACKWARD), strict=True):
        mine = work == kind
        np.add.at(total, (rank[mine], step[mine]), columns["duration_s"][mine])
    forward, backward = (t[:, (totals[0] > 0).all(axis=0) & (totals[1] > 0).all(axis=0)] for t in totals)
    if len(ranks) < 2 or not forward.shape[1]:
        return columns
    if _spread((forward + backward).mean(axis=1)) > LOCK_STEP or _spread(forward.mean(axis=1)) < UNLIKE:
        return columns
    last = int(forward.mean(axis=1).argmax())
    ratio = float(np.median(backward[last] / forward[last]))
    mine = np.flatnonzero(work == Work.BACKWARD)
    own = totals[0][rank[mine], step[mine]] * ratio
    duration = columns["duration_s"].copy()
    duration[mine] = np.where(own > 0, np.minimum(duration[mine], own), duration[mine])
    return {**columns, "duration_s": duration}


def _spread(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float((values.max() - values.min()) / values.max())
