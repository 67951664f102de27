"""Settles what a published run leaves unsaid the way its engineers would: the fastest choice that fits in memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from stallwise.costs.constants import prior_values
from stallwise.costs.grid import grid_of
from stallwise.costs.memory import memory
from stallwise.costs.step import time_step
from stallwise.costs.work import step_work
from stallwise.search.runs import Run
from stallwise.specs.layout import Layout

USABLE_SHARE = 0.96  # of a GPU's memory, the rest being fragmentation nobody plans with
MICRO_BATCHES = (1, 2, 4, 8)
MOST_VIRTUAL = 8


def settle(run: Run) -> Layout:
    """The layout with every open knob chosen."""
    choices = _choices(run)
    if len(choices) == 1:
        return choices[0]
    grid = grid_of(choices, run.workload)
    lean = run.recipe
    if lean.style == "fsdp" and not lean.first_flash:
        # Who trains in bf16 under today's FSDP and does not say more keeps all states in bf16 and fuses the loss.
        lean = replace(lean, weight_bytes=2.0, grad_bytes=2.0, master=False, fused=True)
    needed = memory(run.model, grid, run.workload, lean).device
    times = time_step(step_work(run.model, run.cluster, run.workload, grid, run.recipe), prior_values()).total
    fits = needed <= USABLE_SHARE * run.cluster.gpu.memory_bytes
    if not np.any(fits):
        return choices[int(np.argmin(needed))]
    return choices[int(np.argmin(np.where(fits, times, np.inf)))]


def _choices(run: Run) -> list[Layout]:
    base = run.layout
    per_rank = max(run.workload.global_batch // base.dp, 1)
    sizes = [b for b in MICRO_BATCHES if per_rank % b == 0] if "micro_batch" in run.open_knobs else [base.micro_batch]
    again = [base.recompute]
    if "recompute" in run.open_knobs:
        again = ["none", "selective", "full", *(["experts"] if run.model.experts else [])]
    virtual = [base.virtual_stages]
    if "vp" in run.open_knobs and base.pp > 1:
        layers = run.model.layers
        virtual = [
            v
            for v in range(1, MOST_VIRTUAL + 1)
            if base.pp * v <= layers and (layers % (base.pp * v) == 0 or (layers + 2) % (base.pp * v) == 0)
        ] or [1]
    found = [
        replace(base, micro_batch=b, recompute=r, virtual_stages=v)
        for b, r, v in product(sizes, again, virtual)
        if v == 1 or (per_rank // b) % base.pp == 0
    ]
    return found or [base]
