"""What would change the choice: the leading layouts timed again in worlds that differ in one thing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stallwise.physics.costs.constants import INDEX, Array
from stallwise.physics.costs.grid import Grid
from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload
from stallwise.planner.evaluate import steps
from stallwise.planner.ranking import EQUAL_SHARE


def what_would_change(
    model: Model, cluster: Cluster, workload: Workload, recipe: Recipe, leaders: Grid, needed: Array, values: Array, room: float,
    leaner: tuple[Grid, float, float] | None = None,
) -> list[str]:  # fmt: skip
    """Sentences for the worlds in which another of the leading layouts wins by more than their predictions err."""

    def timed(where: Cluster, how: Recipe, constants: Array) -> Array:
        return steps(model, where, workload, leaders, how, constants).total

    slow = values.copy()
    slow[INDEX["messages"]] *= 1.5
    half = replace(cluster, nic_byte_per_s=cluster.nic_byte_per_s / 2)
    worlds = [
        ("a network half as fast", timed(half, recipe, values)),
        ("messages half as slow again", timed(cluster, recipe, slow)),
        ("data-parallel traffic that nothing hides", timed(cluster, replace(recipe, overlap=False), values)),
        ("tensor-parallel messages that nothing hides", timed(cluster, replace(recipe, tp_overlap="none"), values)),
    ]
    found = []
    for name, seconds in worlds:
        best = int(np.argmin(seconds))
        gain = float(seconds[0] / seconds[best] - 1)
        if gain > EQUAL_SHARE:
            found.append(f"with {name}, {leaders.layout(best, recipe).label} would be {gain:.0%} faster than the first")
    if leaner is not None:
        grid, slower, less = leaner
        found.append(
            f"with less than {needed[0] / room:.0%} of the room, {grid.layout(0, recipe).label} would take over: "
            f"{slower - 1:+.0%} time, {less:.0%} of the first's memory"
        )
    return found
