"""Step time and peak memory of one GPU training in plain PyTorch (columns as in train_single_gpu.csv)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

import numpy as np

from stallwise.errors import StallwiseError
from stallwise.physics.costs.constants import Array, prior_values
from stallwise.physics.costs.fitted import table
from stallwise.physics.costs.grid import grid_of
from stallwise.physics.costs.memory import memory
from stallwise.physics.costs.step import time_step
from stallwise.physics.costs.work import Work, step_work
from stallwise.physics.specs.cluster import cluster_of
from stallwise.physics.specs.layout import Layout
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload
from stallwise.planner.predict import MeasuredStep, calibrated
from stallwise.planner.runs import counted
from stallwise.planner.scoring import Row, Scored, number

KIND = "single-gpu"
NEEDED = ("layers", "hidden", "heads", "ffn", "vocab", "seq", "micro_batch")
TIME_SPREAD = 1.18  # half-widths of the 90% intervals, from this machine's own table
MEMORY_SPREAD = 1.008


def validate(rows: Sequence[Row], calibrate: int) -> list[Scored]:
    """Two predictions per row: the step's time and the allocator's peak."""
    scored: list[Scored] = []
    steps: list[MeasuredStep] = []
    values = prior_values()  # the priors come from one H200's bandwidth, products and launches, not from published runs
    for i, row in enumerate(rows):
        row_id = row.get("row_id") or f"row {i + 1}"
        try:
            work, peak = _ask(row)
        except StallwiseError as error:
            scored.append(Scored(row_id, "h200", "step_s", None, note=error.problem))
            continue
        milliseconds = number(row, "step_ms")
        if i < calibrate:
            if milliseconds:
                steps.append(MeasuredStep(work, np.ones(1), milliseconds * 1e-3))
                values = calibrated(steps, table()["spread"]["dense-bf16"]["within"], prior_values())
            continue
        scored += _score(row, row_id, work, peak, values, milliseconds)
    return scored


def _score(row: Row, row_id: str, work: Work, peak: float, values: Array, milliseconds: float | None) -> list[Scored]:
    seconds = float(time_step(work, values).total[0])
    measured = milliseconds * 1e-3 if milliseconds else None
    seen = number(row, "peak_allocated_bytes")
    note = row.get("error", "")
    return [
        Scored(row_id, "h200", "step_s", measured, seconds, seconds / TIME_SPREAD, seconds * TIME_SPREAD, note),
        Scored(row_id, "h200", "peak_bytes", seen, peak, peak / MEMORY_SPREAD, peak * MEMORY_SPREAD, note),
    ]


def _ask(row: Row) -> tuple[Work, float]:
    missing = [c for c in NEEDED if not row.get(c)]
    if missing:
        raise StallwiseError(f"{', '.join(missing)} missing")
    layers, hidden, heads = (counted(row, c) for c in ("layers", "hidden", "heads"))
    model = Model(
        name="decoder",
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=counted(row, "kv_heads", heads),
        head_dim=hidden // heads,
        intermediate=counted(row, "ffn"),
        vocab=counted(row, "vocab"),
    )
    rows_at_once = counted(row, "micro_batch")
    workload = Workload(counted(row, "seq"), rows_at_once)
    autocast = "amp" in row.get("precision", "")
    width = 4.0 if autocast else 2.0
    recipe = Recipe(
        style="ddp",
        attention="unfused" if row.get("attention") == "naive" else "",
        framework="pytorch",
        weight_bytes=width,
        grad_bytes=width,
        master=False,
        fused=False,
        optimizer="adamw" if "adam" in row.get("optimizer", "adamw") else "sgd",
        overlap=False,
        sustained=False,  # a few steps each, over before the card reaches its power limit
    )
    again = "full" if row.get("recompute", "").lower() in ("true", "full", "1") else "none"
    layout = Layout(zero=0, micro_batch=rows_at_once, recompute=again, sequence_parallel=False)
    grid = grid_of([layout], workload)
    peak = float(memory(model, grid, workload, recipe).allocated[0])
    cluster = cluster_of(row.get("gpu") or "h200", 1)
    return step_work(model, cluster, workload, grid, recipe), peak


def details(rows: Sequence[Row], scored: Sequence[Scored]) -> dict[str, Any]:
    """Time and memory apart; the figures over all are those of the step's time."""
    found: dict[str, Any] = {}
    for metric in ("step_s", "peak_bytes"):
        signed = [s.error_pct for s in scored if s.metric == metric and s.error_pct is not None]
        errors = [abs(e) for e in signed]
        inside = [
            s.low <= s.measured <= s.high
            for s in scored
            if s.metric == metric and s.measured and s.low is not None and s.high is not None
        ]
        if errors:
            found[metric] = {
                "predicted": len(errors),
                "median_abs_pct": median(errors),
                "mean_abs_pct": fmean(errors),
                "bias_pct": fmean(signed),
                "worst_abs_pct": max(errors),
                "inside_interval_share": fmean(inside) if inside else None,
            }
    headline = {k: v for k, v in found.get("step_s", {}).items() if k != "worst_abs_pct"}
    return {**headline, "by_metric": found}
