"""Published memory (columns as in memory.csv): peaks, states, activations, and activations relative to plain TP.

Frameworks and nvidia-smi print binary units under the name GB, so a figure "published as GB" is read as GiB.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stallwise.errors import StallwiseError
from stallwise.physics.costs.grid import Grid, grid_of
from stallwise.physics.costs.memory import Memory, activation_bytes, in_flight, memory, stage_layers, state_bytes
from stallwise.physics.specs.hardware import find_gpu
from stallwise.physics.specs.layout import Layout
from stallwise.physics.specs.model import Model, find_model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.recipe_text import read_recipe
from stallwise.physics.specs.workload import Workload
from stallwise.planner.fit_words import memory_half_width
from stallwise.planner.runs import counted, framework_of, layout_of, model_of, recipe_for
from stallwise.planner.scoring import Row, Scored, figures_of, number

KIND = "memory"
GIB = 2.0**30
NEEDED = ("layers", "hidden", "heads", "seq", "tp", "pp", "micro_batch")
SHAPE = ("layers", "hidden", "heads")  # stated, or in the catalogue under the model's name
MARKS = ("ZB-2p", "ZB-1p", "ZB-V", "ZB-H1", "ZB-H2", "V-Half", "V-Min", "1F1B-I", "1F1B", "GPipe", "DualPipe")


def validate(rows: Sequence[Row], calibrate: int) -> list[Scored]:
    """One prediction per row with a full recipe; nothing is fitted."""
    scored: list[Scored] = []
    seen: dict[str, int] = {}
    for row in rows:
        source = row.get("source", "")
        seen[source] = seen.get(source, 0) + 1
        if seen[source] > calibrate:
            scored.append(_predict(row, source))
    return scored


def _measured(row: Row) -> float | None:
    stated = number(row, "value_gib")
    if stated is not None:
        return stated
    found = re.search(r"[-+]?\d+(?:\.\d+)?", row.get("value_raw", ""))
    return float(found[0]) if found else None


def _predict(row: Row, source: str) -> Scored:
    quantity = row.get("quantity", "").lower()
    metric = "activations_pct_of_tp" if "%" in quantity else "memory_gib"
    row_id, measured = row.get("row_id", ""), _measured(row)
    missing = [c for c in NEEDED if number(row, c) is None and not (c in SHAPE and _catalogued(row.get("model", "")))]
    if read_recipe(row).recompute is None:
        missing.append("recompute")
    if missing:
        return Scored(row_id, source, metric, measured, note=f"not a full recipe: {', '.join(missing)} not stated")
    try:
        value = _value(row, quantity)
    except StallwiseError as error:
        return Scored(row_id, source, metric, measured, note=error.problem)
    stated_recipe = read_recipe(row)
    wide, least = memory_half_width(stated_recipe.lora_rank > 0), value
    if stated_recipe.loss is None and framework_of(stated_recipe, counted(row, "tp"), counted(row, "pp")) in (
        "pytorch",
        "deepspeed",
    ):
        least = min(value, _value({**row, "loss": "chunked"}, quantity))  # nobody says whether logits exist whole
    return Scored(row_id, source, metric, measured, value, least / wide, value * wide, quantity)


def _catalogued(name: str) -> bool:
    try:
        return bool(name and find_model(name))
    except StallwiseError:
        return False


def _value(row: Row, quantity: str) -> float:
    model = model_of(row)
    card = find_gpu(row.get("gpu", ""))
    mark = next((m for m in MARKS if m.lower() in row.get("notes", "").lower()), "")
    full_row = {**row, "schedule": row.get("schedule") or mark}
    gpus = counted(row, "num_gpus")
    stated_recipe = read_recipe(full_row)
    layout, _ = layout_of(full_row, gpus, stated_recipe)
    recipe, _ = recipe_for(full_row, layout, stated_recipe, card.architecture if card else "ampere", model)
    stated = re.search(r"microbatches=(\d+)", row.get("notes", ""))
    batch = number(row, "global_batch")
    many = int(stated[1]) if stated else int(batch // (layout.dp * layout.micro_batch)) if batch else 4 * layout.pp
    workload = Workload(counted(row, "seq"), max(many, 1) * layout.dp * layout.micro_batch)
    grid = grid_of([layout], workload)
    if "%" in quantity:
        plain = replace(layout, recompute="none", sequence_parallel=False)
        base = _activations(model, plain, grid_of([plain], workload), workload, recipe)
        return 100 * _activations(model, layout, grid, workload, recipe) / base
    if "activation" in quantity:
        return _activations(model, layout, grid, workload, recipe) / GIB
    if any(word in quantity for word in ("param", "state", "optimizer", "weights")):
        return float(state_bytes(model, grid, recipe)[0]) / GIB
    found: Memory = memory(model, grid, workload, recipe)
    if card and float(found.device[0]) > card.memory_bytes:  # it ran: logits that would not fit were not formed whole
        found = memory(model, grid, workload, replace(recipe, chunked_loss=True))
    outside = "smi" in quantity or "device" in quantity
    # FSDP frameworks log the allocator's reserved peak, Megatron what was allocated.
    reserved = "reserved" in quantity or (recipe.style == "fsdp" and "allocated" not in quantity)
    slack = found.slack if outside or reserved else np.zeros(1)
    return float((found.allocated + slack + (found.outside if outside else 0))[0]) / GIB


def _activations(model: Model, layout: Layout, grid: Grid, workload: Workload, recipe: Recipe) -> float:
    """What the first stage holds of its layers."""
    layers, _ = stage_layers(model, grid, recipe)
    held = in_flight(grid, recipe.schedule, np.zeros(1)) * layers
    return float((activation_bytes(model, grid, workload, recipe, layout.recompute) * held)[0])


def details(rows: Sequence[Row], scored: Sequence[Scored]) -> dict[str, Any]:
    """Figures by kind of run, and how many runs that ran would have been called too large."""
    rows_by_id = {row.get("row_id", ""): row for row in rows}
    kinds: dict[str, list[Scored]] = {}
    ran = refused = 0
    for s in scored:
        row = rows_by_id.get(s.row_id)
        if row is None or s.predicted is None or s.low is None or "%" in row.get("quantity", ""):
            continue
        stated_recipe = read_recipe(row)
        kinds.setdefault("lora" if stated_recipe.lora_rank else "full", []).append(s)
        card = find_gpu(row.get("gpu", ""))
        if card and "peak" in row.get("quantity", "").lower():
            ran += 1
            refused += s.low * GIB > card.memory_bytes
    share = refused / ran if ran else None
    return {"by_family": {name: figures_of(part) for name, part in kinds.items()}, "false_does_not_fit_share": share}
