"""The arithmetic of a plan, line by line, as a person would do it on a board."""

from __future__ import annotations

from stallwise.physics.costs.flops import CONVENTIONS, forward_flops, step_flops
from stallwise.physics.costs.grid import grid_of
from stallwise.physics.costs.memory import activation_bytes, in_flight, stage_layers
from stallwise.physics.costs.shards import mean_layer
from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.layout import OPTIMIZERS
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload
from stallwise.planner.search import PEAKS, Candidate

GIB = 2.0**30


def explain(model: Model, cluster: Cluster, workload: Workload, recipe: Recipe, chosen: Candidate) -> list[str]:
    """Lines of arithmetic: the model, its memory, its time, and what they come to."""
    return [
        *_model_lines(model, workload),
        *_memory_lines(model, workload, recipe, chosen),
        *_time_lines(model, cluster, workload, chosen),
    ]


def _model_lines(model: Model, workload: Workload) -> list[str]:
    counts = model.parameters()
    lines = [
        f"parameters: {model.layers} layers + tables of {counts.embedding / 1e9:.2f} B = {counts.total / 1e9:.2f} B"
    ]
    if model.experts:
        lines.append(
            f"active per token: {model.experts_per_token} of {model.experts} experts -> {counts.active / 1e9:.2f} B"
        )
    forward = forward_flops(model, workload.seq)
    weights = 2.0 * (counts.active - model.vocab * model.hidden * (0 if model.tied else 1))
    lines += [
        f"forward FLOPs a token: 2 x {weights / 2e9:.2f} B weights + attention over {workload.seq / 2:,.0f} keys "
        f"= {forward / 1e9:.1f} GFLOP; backward twice that",
        f"a step: 3 x {forward / 1e9:.1f} GFLOP x {workload.tokens_per_step:,} tokens "
        f"= {step_flops(model, workload) / 1e15:,.1f} PFLOP ({CONVENTIONS['model']})",
    ]
    return lines


def _memory_lines(model: Model, workload: Workload, recipe: Recipe, chosen: Candidate) -> list[str]:
    layout = chosen.layout
    grid = grid_of([layout], workload)
    plain, experts = (float(x[0]) for x in mean_layer(model, grid))
    first, _ = (float(x[0]) for x in stage_layers(model, grid, recipe))
    per_layer = float(activation_bytes(model, grid, workload, recipe, layout.recompute)[0])
    flight = float(in_flight(grid, recipe.schedule, 0)[0])
    state = OPTIMIZERS.get(recipe.optimizer, 8.0) + (4 if recipe.master else 0)
    shards = layout.shards if layout.zero >= 1 else 1
    lines = [
        f"one GPU of the first stage: {first:.0f} layers x {(plain + experts) / 1e6:.1f} M (TP {layout.tp}"
        + (f", EP {layout.ep}" if model.experts else "")
        + f") = {first * (plain + experts) / 1e9:.2f} B parameters and its part of the input table",
        f"bytes a parameter: weights {recipe.weight_bytes:.0f}{_over(layout.zero >= 3, layout.shards)}, gradients "
        f"{recipe.grad_bytes:.0f}{_over(layout.zero >= 2, layout.shards)}, optimizer {state:.0f}{_over(layout.zero >= 1, shards)}",
        f"activations: {per_layer / 1e6:,.0f} MB a layer and microbatch x {first:.0f} layers x {flight:g} in flight "
        f"= {per_layer * first * flight / GIB:.1f} GiB",
    ]
    parts = " + ".join(f"{n} {v / GIB:.1f}" for n, v in chosen.memory_parts.items() if v > 0.05 * GIB)
    lines.append(
        f"peak ({chosen.peak_stage} stage, {chosen.peak_moment}): {parts} = {chosen.memory_bytes / GIB:.1f} GiB"
    )
    return lines


def _over(sharded: bool, ranks: int) -> str:
    return f"/{ranks}" if sharded and ranks > 1 else ""


def _time_lines(model: Model, cluster: Cluster, workload: Workload, chosen: Candidate) -> list[str]:
    layout = chosen.layout
    many = layout.micro_batches(workload)
    tokens = layout.micro_batch * workload.seq / layout.cp
    lines = [
        f"microbatches: {workload.global_batch} sequences / (DP {layout.dp} x {layout.micro_batch}) = {many}; "
        f"{tokens:,.0f} tokens each on a TP group",
    ]
    if layout.pp > 1:
        share = (layout.pp - 1) / (layout.virtual_stages * many)
        lines.append(
            f"bubble: (PP {layout.pp} - 1) / ({layout.virtual_stages} virtual x {many}) = {share:.1%} of useful time "
            f"= {share / (1 + share):.1%} of the step"
        )
    kind = PEAKS.get(layout.precision, layout.precision)
    useful = sorted(chosen.parts.items(), key=lambda p: -p[1])
    lines.append(
        "seconds: " + " + ".join(f"{n.replace('_', ' ')} {v:.3g}" for n, v in useful if v > 0.003 * chosen.seconds)
    )
    lines += [
        f"step = {chosen.seconds:.3g} s, 90% sure of {chosen.low_s:.3g} to {chosen.high_s:.3g} s",
        f"MFU = {step_flops(model, workload) / 1e15:,.0f} PFLOP / ({layout.gpus} x "
        f"{cluster.gpu.peak(kind) / 1e12:.0f} TFLOP/s {kind} x {chosen.seconds:.3g} s) = {chosen.mfu_share:.1%}; "
        f"HFU, recomputation counted, {chosen.hfu_share:.1%}",
    ]
    return lines
