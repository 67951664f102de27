"""What a published run leaves unsaid, as a mixture: every setting that could be meant, with its weight.

Habits weigh recipes; among layouts engineers take a fast one that fits, so slower ones and ones that do not fit weigh
less. Nothing is settled by a single best guess: the spread over the settings is part of the answer's interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from stallwise.physics.costs.constants import Array
from stallwise.physics.costs.grid import grid_of
from stallwise.physics.costs.memory import memory
from stallwise.physics.costs.step import time_step
from stallwise.physics.costs.work import Work, concatenate, step_work
from stallwise.physics.specs.layout import Layout
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.states import States
from stallwise.planner.runs import Run

USABLE_SHARE = 0.96  # of a GPU's memory, the rest being fragmentation nobody plans with
MEMORY_ERROR = 0.25  # frameworks keep fewer states than we believe: a quarter too much is e times less likely
CARE = 0.08  # a setting slower by this share is e times less likely to have been kept
MICRO_BATCHES = (1, 2, 4, 8)
MOST_VIRTUAL = 8
LEAST_WEIGHT = 0.02  # rarer recipes are left out
STATE_KNOBS = ("param", "grad", "frozen")
LAYOUT_KNOBS = ("micro_batch", "vp", "recompute", "zero")


@dataclass(frozen=True)
class Settings:
    """All settings a run may have had; weights sum to one."""

    layouts: list[Layout]
    recipes: list[Recipe]
    weights: Array
    work: Work

    @property
    def likeliest(self) -> int:
        """The one with the largest weight."""
        return int(np.argmax(self.weights))


def settings_of(run: Run, values: Array) -> Settings:
    """Every open knob's choices; `values` are the constants that say which are fast."""
    layouts, odds = _layouts(run)
    recipes, shares = _recipes(run)
    grid = grid_of(layouts, run.workload)
    works = [step_work(run.model, run.cluster, run.workload, grid, recipe) for recipe in recipes]
    weights = []
    for recipe, share, work in zip(recipes, shares, works, strict=True):
        one = np.array(odds)
        if len(layouts) > 1:
            needed = memory(run.model, grid, run.workload, _leanest(recipe)).device
            times = time_step(work, values).total
            # It ran: where nothing seems to fit our bytes are too many, by the same factor for all.
            room = max(USABLE_SHARE * run.cluster.gpu.memory_bytes, needed.min())
            held = np.exp(-np.maximum(needed / room - 1, 0.0) / MEMORY_ERROR)
            quick = times[held > 0.5].min()
            one = one * held * np.exp(-np.maximum(times / quick - 1, 0.0) / CARE)
        weights.append(share * one / one.sum())
    return Settings(
        layouts * len(recipes), [r for r in recipes for _ in layouts], np.concatenate(weights), concatenate(works)
    )


def _leanest(recipe: Recipe) -> Recipe:
    """Who trains in bf16 under today's FSDP and does not say more keeps all states in bf16 and fuses the loss."""
    if recipe.style != "fsdp" or recipe.precision == "fp32":
        return recipe
    return replace(recipe, weight_bytes=2.0, grad_bytes=2.0, master=False, fused=True)


def _recipes(run: Run) -> tuple[list[Recipe], list[float]]:
    """Every recipe the words allow, with its habit's weight."""
    names = [n for n in run.open_knobs if n not in LAYOUT_KNOBS]
    found: list[tuple[Recipe, float]] = []
    for choice in product(*(run.open_knobs[n].items() for n in names)):
        changes: dict[str, object] = {}
        states, weight = run.recipe.states, 1.0
        for name, (value, share) in zip(names, choice, strict=True):
            weight *= share
            if name == "kernels":
                changes["fused"] = value == "fused"
            elif name == "overlap":
                changes["overlap"] = value == "yes"
            elif name in STATE_KNOBS:
                states = replace(states or States(), **{name: value})  # type: ignore[arg-type]
            else:
                changes[name] = value
        if weight >= LEAST_WEIGHT:
            changed = replace(run.recipe, states=states, **changes)  # type: ignore[arg-type]
            found.append((changed.at_zero(run.layout.zero), weight))
    if not found:
        return [run.recipe], [1.0]
    total = sum(w for _, w in found)
    return [r for r, _ in found], [w / total for _, w in found]


def _layouts(run: Run) -> tuple[list[Layout], list[float]]:
    base = run.layout
    per_rank = max(run.workload.global_batch // base.dp, 1)
    sizes = [b for b in MICRO_BATCHES if per_rank % b == 0] if "micro_batch" in run.open_knobs else [base.micro_batch]
    again = dict(run.open_knobs.get("recompute") or {base.recompute: 1.0})
    if "recompute" in run.open_knobs and run.model.experts:
        again["experts"] = again.get("selective", 0.2)
    stages = {int(k): w for k, w in (run.open_knobs.get("zero") or {str(base.zero): 1.0}).items()}
    virtual = [base.virtual_stages]
    if "vp" in run.open_knobs and base.pp > 1:
        layers = run.model.layers
        virtual = [
            v
            for v in range(1, MOST_VIRTUAL + 1)
            if base.pp * v <= layers and (layers % (base.pp * v) == 0 or (layers + 2) % (base.pp * v) == 0)
        ] or [1]
    found = [
        (replace(base, micro_batch=b, recompute=r, virtual_stages=v, zero=z), w * x)
        for b, (r, w), v, (z, x) in product(sizes, again.items(), virtual, stages.items())
        if v == 1 or (per_rank // b) % base.pp == 0
    ] or [(base, 1.0)]
    return [layout for layout, _ in found], [w for _, w in found]
