"""Which of many layouts comes first: the fast ones, and among those that are as good as equal the simplest.

Predicted times of two layouts of one job differ from the truth by a few percent even after everything they share has
cancelled, so differences below that are no reason to take the more complicated one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stallwise.physics.costs.constants import Array
from stallwise.physics.costs.grid import RECOMPUTE_CODE, Grid
from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.workload import Workload

EQUAL_SHARE = 0.05  # two layouts this close are equal: what predictions of one job's layouts miss by (1,440 A100 runs)
SLACK_PRICE = 0.02  # time that room to spare on the card is worth
SHORT_TOKENS = 8192  # sequences up to this length fit whole: nobody cuts them unless memory asks
MANY_EXPERTS = 16  # from here on their weights outweigh what tokens send
MOST_PICKED = 0.12  # a pick among very many flatters itself by no more than this


def tiers(model: Model, grid: Grid, cluster: Cluster, workload: Workload) -> NDArray[np.int64]:
    """What an engineer takes only when forced: short sequences cut in pieces, tensor parallelism across nodes, and
    many experts' weights brought to the tokens for every pass instead of the tokens to the experts.
    """
    cut = (grid.cp > 1) & (workload.seq <= SHORT_TOKENS)
    across = grid.tp > max(cluster.domain, 1)
    brought = (grid.zero >= 3) & (grid.ep == 1) & (model.experts >= MANY_EXPERTS)
    return np.asarray(cut.astype(np.int64) + brought + 2 * across.astype(np.int64))


def simplicity(grid: Grid) -> Array:
    """Axes in use, and knobs that cost attention to set up; fewer is simpler."""
    hard = RECOMPUTE_CODE
    axes = sum((axis > 1).astype(float) for axis in (grid.tp, grid.pp, grid.cp, grid.ep))
    extras = 0.5 * (grid.vp > 1) + 0.25 * (grid.zero >= 2) + 0.25 * (grid.shards < grid.dp * grid.cp)
    again = np.where(grid.recompute == hard["full"], 0.5, np.where(grid.recompute == hard["none"], 0.0, 0.25))
    return np.asarray(axes + extras + again)


def order(
    model: Model,
    seconds: Array,
    needed: Array,
    fits: NDArray[np.bool_],
    grid: Grid,
    cluster: Cluster,
    workload: Workload,
    *,
    sure: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Indices of the layouts that fit, best first; those as good as the fastest stand by slack, simplicity, then memory.

    `sure` marks those that fit by the upper end of their interval: they come first where that costs next to nothing.
    """
    tier = tiers(model, grid, cluster, workload)
    lowest = tier[fits].min()
    inside = np.flatnonzero(fits & (tier == lowest))
    outside = np.flatnonzero(fits & (tier > lowest))
    equal = seconds[inside] <= seconds[inside].min() * (1 + EQUAL_SHARE)
    ties, rest = inside[equal], inside[~equal]
    # Memory decides only by eighths of what the leanest of them takes: a percent less is no reason either.
    step = max(float(needed[ties].min()) / 8, 1.0)
    risky = np.zeros(len(ties))
    if sure is not None and np.any(sure[ties] & (seconds[ties] <= seconds[ties].min() * (1 + SLACK_PRICE))):
        risky = (~sure[ties]).astype(float)
    simple = np.lexsort((seconds[ties], np.round(needed[ties] / step), simplicity(grid.take(ties)), risky))
    return np.concatenate(
        [
            ties[simple],
            rest[np.argsort(seconds[rest], kind="stable")],
            outside[np.argsort(seconds[outside], kind="stable")],
        ]
    )


def equals(seconds: Array, first: float) -> NDArray[np.bool_]:
    """Layouts that are as good as this one."""
    return np.asarray(np.abs(seconds / first - 1) <= EQUAL_SHARE)


def picked_ratio(seconds: Array, fits: NDArray[np.bool_], grid: Grid) -> float:
    """How much more than predicted the fastest of many may take because it was picked for looking fastest.

    The best of n equal layouts whose predictions scatter by s looks s sqrt(2 ln n) too fast at most; half of it is
    taken, since neighbours err together. Only distinct meshes near the best count.
    """
    near = fits & (seconds <= seconds[fits].min() * (1 + 2 * EQUAL_SHARE))
    meshes = len(np.unique(np.stack([grid.tp, grid.pp, grid.cp, grid.ep])[:, near], axis=1).T)
    return 1.0 + min(0.5 * EQUAL_SHARE * float(np.sqrt(2 * np.log(max(meshes, 1)))), MOST_PICKED)
