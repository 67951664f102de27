"""Memory of one GPU by the byte: named parts, the moment of the peak, and what each knob would free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stallwise.costs.activations import SINGLE, Saved, kept_tensors, layer_tensors, residual_bytes
from stallwise.costs.gemm import Array
from stallwise.costs.grid import RECOMPUTE_CODE, Grid, Recipe
from stallwise.costs.shards import layer_params_on_gpu, mean_layer
from stallwise.specs.layout import OPTIMIZERS
from stallwise.specs.model import Model
from stallwise.specs.workload import Workload

WORKSPACE_BYTES = 34e6  # cuBLAS on Hopper keeps 32 MiB and a little
CONTEXT_BYTES = 0.55e9  # CUDA context and kernels, outside the allocator
COMMUNICATOR_BYTES = 0.35e9  # NCCL's buffers per communicator in use, outside the allocator
# Reserved beyond allocated, fitted on the H200 table: a fixed gigabyte and a share of what comes and goes; re-run layers
# and large logits take turns in the same pool and leave holes. Megatron's few fixed sizes leave fewer.
SLACK_BYTES, SLACK_SHARE, SLACK_RECOMPUTE_SHARE = 1.0e9, 0.066, 0.36
# Bytes per logit while the loss is formed. Plain PyTorch: fp32 log-softmax, its gradient, and the gradient before it;
# at the end of the forward 16-bit logits, their fp32 copy and the log-softmax. Megatron works in place.
LOSS_BACKWARD, LOSS_FORWARD, LOSS_COMPILED, LOSS_FUSED = 12.0, 10.0, 10.0, 8.0
UNFUSED_BACKWARD = 10.0  # bytes per score in flight: fp32 gradient before and after the softmax, and its cast
GATHERED_LAYERS = 2.0  # FSDP: the layer in use and the one prefetched


@dataclass
class Memory:
    """Bytes on the fullest GPU for each layout; parts are those present at the peak."""

    allocated: Array
    weights: Array
    gradients: Array
    optimizer: Array
    activations: Array
    logits: Array
    casts: Array  # 16-bit copies of fp32 weights
    gathered: Array  # layers unsharded for use
    workspace: Array
    outside: Array  # context, communicators: not the allocator's
    slack: Array
    moment: Array  # 0 start of the backward pass, 1 end of the forward, 2 optimizer step, 3 a layer's backward
    stage: Array  # 0 first, 1 last

    @property
    def device(self) -> Array:
        """What the GPU shows as used."""
        return self.allocated + self.outside + self.slack

    def parts(self) -> dict[str, Array]:
        """Named parts that sum to `device`."""
        names = ("weights", "gradients", "optimizer", "activations", "logits", "casts", "gathered", "workspace")
        return {n: getattr(self, n) for n in names} | {"outside the allocator": self.outside, "slack": self.slack}


MOMENTS = ("start of the backward pass", "end of the forward pass", "optimizer step", "backward pass of a layer")


def in_flight(grid: Grid, schedule: str, stage: Any) -> Array:
    """Microbatch-stages whose activations a rank holds at once, `stage` counted from 0."""
    p, m, v = grid.pp, grid.micro_batches, grid.vp
    plain = np.minimum(p - stage, m).astype(float)
    if schedule == "gpipe":
        return m.astype(float)
    if schedule in ("zb-h1", "zb-h2", "zb-v", "dualpipe"):
        # Split backward passes use the room that earlier stages need anyway on every stage (Qi et al. 2024, table 4).
        room = {"zb-h2": 2 * p, "dualpipe": p + 1}.get(schedule, p)
        return np.asarray(np.minimum(room, m), dtype=float)
    if schedule in ("v-half", "v-min"):
        return np.asarray(np.minimum(np.ceil(p / (2 if schedule == "v-half" else 3)) + 1, m), dtype=float)
    # Interleaving warms up with (v-1) p + 2 (p - stage) - 1 chunks, each 1/v of a stage.
    chunks = (v - 1) * p + 2 * (p - stage) - 1
    return np.asarray(np.where(v > 1, np.minimum(chunks / v, m), plain))


def tensor_bytes(tensor: Saved, grid: Grid, tokens: Array) -> Array:
    """A tensor of one microbatch on one GPU."""
    if tensor.split == "tp":
        share = grid.tp.astype(float)
    elif tensor.split == "ep":
        share = np.where(grid.ep > 1, grid.tp / grid.etp, grid.etp).astype(float)
    elif tensor.split == "sp":
        share = np.where(grid.sp, grid.tp, 1).astype(float)
    else:
        share = np.ones(len(grid))
    return np.asarray(tensor.byte_per_token * tokens / share)


def activation_bytes(model: Model, grid: Grid, workload: Workload, recipe: Recipe, recompute: str) -> Array:
    """One microbatch through one mean layer."""
    tokens = grid.mb * workload.seq / grid.cp
    total = np.zeros(len(grid))
    for attention, mlp, layers in model.kinds:
        for tensor in kept_tensors(model, attention, mlp, workload.seq, recipe, recompute):
            total = total + tensor_bytes(tensor, grid, tokens) * layers / model.layers
    return total


def widest_layer_bytes(model: Model, grid: Grid, workload: Workload, recipe: Recipe) -> Array:
    """All tensors of the layer that keeps most, as when it is recomputed."""
    tokens = grid.mb * workload.seq / grid.cp
    worst = np.zeros(len(grid))
    for attention, mlp, _ in model.kinds:
        tensors = layer_tensors(model, attention, mlp, workload.seq, recipe)
        worst = np.maximum(worst, sum((tensor_bytes(t, grid, tokens) for t in tensors), np.zeros(len(grid))))
    return worst


def passing_bytes(model: Model, grid: Grid, workload: Workload, recipe: Recipe) -> Array:
    """Gradients that live only while one layer runs backward: its MLP's or an unfused attention's."""
    tokens = grid.mb * workload.seq / grid.cp
    width = max(model.intermediate if model.moe_layers < model.layers else 0, model.shared_intermediate)
    mlp = 2.0 * (model.up_width + 1) * width * tokens / grid.tp
    if recipe.flash_attention:
        return np.asarray(mlp)
    return np.asarray(np.maximum(mlp, UNFUSED_BACKWARD * model.heads * workload.seq * tokens / grid.tp))


def stage_layers(model: Model, grid: Grid, recipe: Recipe) -> tuple[Array, Array]:
    """Layers on the first and on the last stage."""
    chunks = grid.pp * grid.vp
    fewer = np.where((model.layers % chunks != 0) & ((model.layers + 2) % chunks == 0), 1, recipe.end_stage_layers)
    even = (model.layers + 2 * fewer) / grid.pp - fewer
    first = np.where(
        model.layers % grid.pp == 0, model.layers / grid.pp, np.where(fewer > 0, even, np.ceil(model.layers / grid.pp))
    )
    return np.where(grid.pp > 1, np.where(fewer > 0, even, first), model.layers).astype(float), np.where(
        grid.pp > 1, np.where(fewer > 0, even, np.maximum(model.layers - first * (grid.pp - 1), 1)), model.layers
    ).astype(float)


def state_bytes(model: Model, grid: Grid, recipe: Recipe) -> Array:
    """Weights, gradients and optimizer states on the first stage."""
    layers, _ = stage_layers(model, grid, recipe)
    plain, experts = mean_layer(model, grid)
    table = model.vocab * model.hidden / grid.tp * np.where((grid.pp == 1) & (not model.tied), 2, 1)
    weights, grads, states, _ = _states(model, grid, recipe, plain * layers + table, experts * layers)
    return np.asarray(weights + grads + states)


def stage_memories(model: Model, grid: Grid, workload: Workload, recipe: Recipe) -> list[tuple[str, Memory]]:
    """Each kind of stage; the second and the last mean something only where there are that many."""
    first_layers, last_layers = stage_layers(model, grid, recipe)
    first = _stage(model, grid, workload, recipe, first_layers, FIRST)
    if not np.any(grid.pp > 1):
        return [("only", first)]
    found = [("first", first), ("last", _stage(model, grid, workload, recipe, last_layers, LAST))]
    if np.any(grid.pp > 2):
        rest = np.ceil((model.layers - first_layers - last_layers) / np.maximum(grid.pp - 2, 1))
        found.append(("middle", _stage(model, grid, workload, recipe, rest, SECOND)))
    return found


def memory(model: Model, grid: Grid, workload: Workload, recipe: Recipe) -> Memory:
    """The fullest GPU of each layout: the first stage holds most microbatches, the last the logits."""
    stages = dict(stage_memories(model, grid, workload, recipe))
    best = stages.get("only") or stages["first"]
    for name, enough in (("last", 1), ("middle", 2)):
        if name in stages:
            fuller = (grid.pp > enough) & (stages[name].device > best.device)
            names = best.__dataclass_fields__
            best = Memory(**{n: np.where(fuller, getattr(stages[name], n), getattr(best, n)) for n in names})
    return best


FIRST, LAST, SECOND = 0, 1, 2


def _stage(model: Model, grid: Grid, workload: Workload, recipe: Recipe, layers: Array, which: int) -> Memory:
    """One stage: 0 first (or only), 1 last, 2 second."""
    size = len(grid)
    plain, experts = mean_layer(model, grid)
    table = model.vocab * model.hidden / grid.tp
    only = grid.pp == 1
    tables = np.where(only, table * (1 if model.tied else 2), table * (which != 2))
    tables = tables + np.where(only | (which == 0), model.learned_positions * model.hidden, 0)
    plain_params = plain * layers + tables
    expert_params = experts * layers
    params = plain_params + expert_params
    weights, grads, states, gathered = _states(model, grid, recipe, plain_params, expert_params)
    casts = 2.0 * (params - np.where(only, table, 0)) * (recipe.weight_bytes == SINGLE) * (grid.zero < 3)

    stage = np.zeros(size) if which == 0 else np.ones(size) if which == 2 else grid.pp - 1.0
    flight = in_flight(grid, recipe.schedule, np.where(only, 0, stage))
    kept = np.zeros(size)
    for name, code in RECOMPUTE_CODE.items():
        here = grid.recompute == code
        if np.any(here):
            kept = np.where(here, activation_bytes(model, grid, workload, recipe, name), kept)
    tokens = grid.mb * workload.seq / grid.cp
    held = kept * layers * flight
    sp = np.where(grid.sp, grid.tp, 1)
    if recipe.offload == "activations":
        held = kept * 2.0  # two layers in flight between GPU and host
    final = np.where(only | (which == 1), (residual_bytes(recipe) + 2.0) * model.hidden * tokens / sp, 0.0)
    entry = np.where((which == 0) & recipe.dropout, 1.0 * model.hidden * tokens / sp * flight, 0.0)
    held = held + final + entry
    has_loss = only | (which == 1)
    logits = np.where(has_loss, model.vocab / grid.tp * tokens, 0.0)
    widest = widest_layer_bytes(model, grid, workload, recipe)
    passing = passing_bytes(model, grid, workload, recipe)
    return _peak(grid, recipe, weights, grads, states, gathered, casts, held, logits, widest, passing, table, which)


def _states(
    model: Model, grid: Grid, recipe: Recipe, plain: Array, experts: Array
) -> tuple[Array, Array, Array, Array]:
    """Weights, gradients and optimizer states, and the layers gathered for use."""
    data = (grid.dp * grid.cp).astype(float)
    shards = np.minimum(grid.shards, data)
    expert_data = np.maximum(data * grid.tp / (grid.ep * grid.etp), 1.0)
    expert_shards = np.minimum(expert_data, shards)
    params = plain + experts

    def spread(stage: int) -> Array:
        return np.where(grid.zero >= stage, plain / shards + experts / expert_shards, params)

    eight_bit = recipe.precision in ("fp8", "mxfp8", "nvfp4") and recipe.style == "megatron"
    weights = recipe.weight_bytes * spread(3)
    if recipe.precision in ("fp8",) and eight_bit:
        weights = weights + 2.0 * params * 0.9 * 0  # quantised copies are made per layer and dropped
    trained = 1.0
    if recipe.lora_rank:
        trained = recipe.lora_rank * 12 * model.hidden * model.layers / max(model.parameters().total, 1)
    grads = recipe.grad_bytes * spread(2) * trained
    per_param = OPTIMIZERS.get(recipe.optimizer, 8.0)
    if recipe.weight_bytes == 2.0 and not recipe.master and recipe.optimizer == "adamw":
        per_param = 4.0  # states follow the weights' type
    per_param += 4.0 if recipe.master else 0.0
    states = per_param * spread(1) * trained
    if recipe.offload in ("optimizer", "params"):
        states = states * 0.0
    biggest = np.zeros(len(grid))
    for attention, mlp, _ in model.kinds:
        one, routed = layer_params_on_gpu(model, attention, mlp, grid)
        biggest = np.maximum(biggest, one + routed / 1.0)
    table = model.vocab * model.hidden / grid.tp
    unit = np.maximum(biggest, table)
    # In use and prefetched, 16 bit, and one unit's gradient before it is scattered.
    gathered = np.where(grid.zero >= 3, (GATHERED_LAYERS * 2.0 + recipe.grad_bytes) * unit, 0.0)
    return weights, grads, states, gathered


def _peak(
    grid: Grid, recipe: Recipe, weights: Array, grads: Array, states: Array, gathered: Array, casts: Array,
    held: Array, logits: Array, widest: Array, passing: Array, table: Array, which: int,
) -> Memory:  # fmt: skip
    """The worst of four moments."""
    zero = np.zeros(len(grid))
    full = grid.recompute == 2
    # Megatron keeps one gradient buffer for good; plain PyTorch frees gradients between steps (set_to_none).
    resident = recipe.style == "megatron"
    grads_early = grads if resident else np.where(grid.micro_batches > 1, grads, zero)
    loss_b, loss_f = LOSS_BACKWARD, LOSS_FORWARD
    if recipe.fused:
        loss_b = loss_f = LOSS_FUSED if resident else LOSS_COMPILED
    head_cast = 2.0 * table * (recipe.weight_bytes == SINGLE) * (grid.zero < 3) + zero
    grads_back = grads_early + (zero if resident else recipe.grad_bytes * table * (grid.pp == 1))
    moments = [
        # (activations, logits, casts, gradients)
        (held, loss_b * logits, np.where(full, head_cast, casts), grads_early),
        (held, loss_f * logits, casts, grads_early),
        (zero, zero, zero, grads),
        (held + np.where(full, widest, zero) + passing, 2.0 * logits, np.where(full, zero, casts), grads_back),
    ]
    best: tuple[Any, ...] | None = None
    for code, (acts, loss, cast, grad) in enumerate(moments):
        total = weights + grad + states + acts + loss + cast + gathered
        if best is None:
            best = (total, acts, loss, cast, grad, np.full(len(grid), code))
            continue
        more = total > best[0]
        best = tuple(
            np.where(more, new, old)
            for new, old in zip((total, acts, loss, cast, grad, code + zero), best, strict=True)
        )
    assert best is not None
    groups = (grid.tp > 1).astype(float) + (grid.dp * grid.cp > 1) + (grid.pp > 1) + (grid.ep > 1) + (grid.cp > 1)
    allocated = best[0] + WORKSPACE_BYTES
    slack = SLACK_SHARE * (best[1] + best[2])
    if not resident:
        slack = slack + SLACK_BYTES + np.where(full, SLACK_RECOMPUTE_SHARE, 0.0) * (best[1] + best[2])
    return Memory(
        allocated=allocated, weights=weights + zero, gradients=best[4] + zero, optimizer=states + zero,
        activations=best[1] + zero, logits=best[2] + zero, casts=best[3] + zero, gathered=gathered + zero,
        workspace=np.full(len(grid), WORKSPACE_BYTES), outside=CONTEXT_BYTES + COMMUNICATOR_BYTES * groups,
        slack=slack, moment=best[5].astype(float), stage=np.full(len(grid), float(which)),
    )  # fmt: skip
