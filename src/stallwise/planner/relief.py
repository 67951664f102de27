"""What would make a job fit that does not: each knob tried on the leanest layouts, in bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stallwise.physics.costs.constants import Array
from stallwise.physics.costs.grid import Grid
from stallwise.physics.costs.memory import device_bytes
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.states import States
from stallwise.physics.specs.workload import Workload
from stallwise.planner.evaluate import by_recipe

LEANEST = 200  # layouts tried again
GIB = 2.0**30


def what_would_fit(
    model: Model, workload: Workload, grid: Grid, needed: Array, recipe: Recipe, room: float, gpus: int
) -> list[str]:
    """Flags under which the leanest layout has room, and how many GPUs would do without them."""
    lean = grid.take(np.argsort(needed, kind="stable")[:LEANEST])
    states = recipe.states or States()
    tries = [
        ("--grad-dtype bf16", replace(recipe, states=replace(states, grad="bf16"))),
        ("--optimizer adamw-8bit", replace(recipe, optimizer="adamw-8bit")),
        (
            "--grad-dtype bf16 --optimizer adamw-8bit",
            replace(recipe, states=replace(states, grad="bf16"), optimizer="adamw-8bit"),
        ),
        ("--chunked-loss", replace(recipe, chunked_loss=True)),
        ("--offload optimizer", replace(recipe, offload="optimizer")),
    ]
    if not recipe.lora_rank:
        tries.append(("--lora 16", replace(recipe, lora_rank=16)))
    found = []
    for flags, changed in tries:
        least = min(
            float(device_bytes(model, lean.take(i), workload, own).min()) for i, own in by_recipe(lean, changed)
        )
        if least <= room:
            found.append(f"{flags} ({least / GIB:.0f} GiB)")
    more = int(np.ceil(gpus * float(np.min(needed)) / room))
    return [*found, f"about {max(more, gpus + 1)} GPUs"]
