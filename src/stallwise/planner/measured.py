"""The measured side of a published row: its step time, from whichever of its numbers was printed."""

from __future__ import annotations

from typing import Any

from stallwise.physics.costs.flops import step_flops
from stallwise.planner.runs import Run, number


def measured_step_s(row: dict[str, Any], run: Run) -> float | None:
    """Seconds of a step as printed, or worked back from throughput; None where nothing was measured."""
    printed = number(row, "step_time_s")
    if printed:
        return printed
    tokens = number(row, "tokens_per_s_per_gpu")
    if tokens:
        return run.workload.tokens_per_step / tokens / run.cluster.gpus
    rate = number(row, "tflops_per_gpu")
    kind = str(row.get("tflops_kind") or "")
    # Megatron, NeMo and llm-foundry count attention over the full square; those who do not say so follow them.
    convention = "hardware" if "hardware" in kind else "full-square"
    flops = step_flops(run.model, run.workload, convention, recompute=run.layout.recompute)
    if rate:
        return flops / (rate * 1e12 * run.cluster.gpus)
    share = number(row, "mfu_pct")
    return flops / (share / 100 * run.cluster.gpu.peak("bf16") * run.cluster.gpus) if share else None
