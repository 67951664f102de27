"""Time and memory of many layouts at once, each with the types its framework keeps under its ZeRO stage."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from stallwise.physics.costs.constants import Array
from stallwise.physics.costs.fitted import constants
from stallwise.physics.costs.grid import Grid, Ints
from stallwise.physics.costs.memory import Memory, device_bytes, memory
from stallwise.physics.costs.step import Step, time_step
from stallwise.physics.costs.work import step_work
from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload

CHUNK = 65_536  # layouts timed at once: larger arrays leave the processor's cache


def by_recipe(grid: Grid, recipe: Recipe) -> list[tuple[Ints, Recipe]]:
    """The layouts that keep their states alike, by index."""
    found: dict[Recipe, list[int]] = {}
    for stage in np.unique(grid.zero):
        found.setdefault(recipe.at_zero(int(stage)), []).append(int(stage))
    return [(np.flatnonzero(np.isin(grid.zero, stages)).astype(np.int64), own) for own, stages in found.items()]


def evaluate(
    model: Model, cluster: Cluster, workload: Workload, grid: Grid, recipe: Recipe, values: Array | None = None
) -> tuple[Array, Array]:
    """Seconds and bytes of every layout, in pieces that fit the processor's cache."""
    values = constants() if values is None else values
    seconds, needed = np.empty(len(grid)), np.empty(len(grid))
    for which, own in by_recipe(grid, recipe):
        for start in range(0, len(which), CHUNK):
            piece = which[start : start + CHUNK]
            part = grid.take(piece)
            needed[piece] = device_bytes(model, part, workload, own)
            seconds[piece] = time_step(step_work(model, cluster, workload, part, own), values).total
    return seconds, needed


def steps(
    model: Model, cluster: Cluster, workload: Workload, grid: Grid, recipe: Recipe, values: Array | None = None
) -> Step:
    """Where each layout's seconds go."""
    values = constants() if values is None else values
    whole = Step(**{f.name: np.empty(len(grid)) for f in fields(Step)})
    for which, own in by_recipe(grid, recipe):
        part = time_step(step_work(model, cluster, workload, grid.take(which), own), values)
        for f in fields(Step):
            getattr(whole, f.name)[which] = getattr(part, f.name)
    return whole


def memories(model: Model, grid: Grid, workload: Workload, recipe: Recipe) -> Memory:
    """Where each layout's bytes go."""
    whole = Memory(**{f.name: np.empty(len(grid)) for f in fields(Memory)})
    for which, own in by_recipe(grid, recipe):
        part = memory(model, grid.take(which), workload, own)
        for f in fields(Memory):
            getattr(whole, f.name)[which] = getattr(part, f.name)
    return whole
