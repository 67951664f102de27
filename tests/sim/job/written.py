"""Planted jobs written as programs write them: one timeline for all ranks, one file a rank, logs and tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.sim.job.planted import LABELS, Plan, columns

COMM = range(3, 9)


def events(plan: Plan, name: Callable[[str], str] = str) -> list[dict[str, object]]:
    """Chrome events: processes are data-parallel ranks, threads are named after stages."""
    table = columns(plan)
    found: list[dict[str, object]] = []
    for stage in range(plan.stages):
        for replica in range(plan.replicas):
            for lane, word in enumerate(("compute", "pp-comm")):
                args = {"name": f"PP rank {stage}, TP rank 0, {word}"}
                found.append({"name": "thread_name", "ph": "M", "pid": replica, "tid": 2 * stage + lane, "args": args})
    for i in range(len(table["label"])):
        label, stage = int(table["label"][i]), int(table["stage"][i])
        args = {
            "step": int(table["step"][i]),
            "mb_id": int(table["microbatch"][i]),
            "model_chunk": int(table["chunk"][i]),
        }
        found.append({
            "name": name(LABELS[label]), "ph": "X", "pid": int(table["replica"][i]), "tid": 2 * stage + (label in COMM),
            "ts": round(float(table["start_s"][i]) * 1e6, 3), "dur": round(float(table["duration_s"][i]) * 1e6, 3),
            "args": args,
        })  # fmt: skip
    return found


def write_ranks(folder: Path, plan: Plan) -> Path:
    """A file a rank, in Megatron's order of ranks; each says its places in the args of its events."""
    folder.mkdir(parents=True, exist_ok=True)
    table = columns(plan)
    for stage in range(plan.stages):
        for replica in range(plan.replicas):
            rank = stage * plan.replicas + replica
            rows = [
                {"name": LABELS[table["label"][i]], "ph": "X", "pid": 4000 + rank, "tid": 1,
                 "ts": float(table["start_s"][i]) * 1e6, "dur": float(table["duration_s"][i]) * 1e6,
                 "args": {"iteration": int(table["step"][i]), "microbatch": int(table["microbatch"][i]),
                          "chunk": int(table["chunk"][i]), "stage": stage, "dp_rank": replica}}
                for i in np.flatnonzero((table["stage"] == stage) & (table["replica"] == replica))
            ]  # fmt: skip
            (folder / f"rank_{rank}.json").write_text(json.dumps({"traceEvents": rows}))
    return folder


def step_parts(
    ranks: int, steps: range, slow: int, since: int, factor: float
) -> list[tuple[int, int, float, float, float]]:
    """(rank, step, data, forward and backward, all-reduce) in seconds: who is quick waits in the all-reduce."""
    rng = np.random.default_rng(11)
    rows = []
    for step in steps:
        passes = (
            0.8 * rng.normal(1.0, 0.01, ranks) * np.where((np.arange(ranks) == slow) & (step >= since), factor, 1.0)
        )
        for rank in range(ranks):
            wait = 0.05 + float(passes.max() - passes[rank])
            rows.append((rank, step, float(rng.uniform(0.010, 0.014)), float(passes[rank]), wait))
    return rows
