"""Memory of one GPU by the byte: named parts, the moment of the peak, and what each knob would free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stallwise.physics.costs.activations import HALF, SINGLE, kept_tensors, layer_tensors, residual_bytes, tensor_bytes
from stallwise.physics.costs.adapters import trained_share
from stallwise.physics.costs.gemm import Array
from stallwise.physics.costs.grid import RECOMPUTE_CODE, Grid, distinct
from stallwise.physics.costs.shards import layer_params_on_gpu, mean_layer
from stallwise.physics.specs.layout import OPTIMIZERS
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe
from stallwise.physics.specs.workload import Workload

WORKSPACE_BYTES = 34e6  # cuBLAS on Hopper keeps 32 MiB and a little
CONTEXT_BYTES = 0.55e9  # CUDA context and kernels, outside the allocator
COMMUNICATOR_BYTES = 0.35e9  # NCCL's buffers per communicator in use, outside the allocator
# Reserved beyond allocated, fitted on the H200 table: a fixed gigabyte and a share of what comes and goes; re-run layers
# and large logits take turns in the same pool and leave holes. Megatron's few fixed sizes leave fewer.
SLACK_BYTES, SLACK_SHARE, SLACK_RECOMPUTE_SHARE = 1.0e9, 0.066, 0.36
# Bytes per logit while the loss is formed. Plain PyTorch: fp32 log-softmax, its gradient, and the gradient before it;
# at the end of the forward 16-bit logits, their fp32 copy and the log-softmax. Megatron works in place.
LOSS_BACKWARD, LOSS_FORWARD, LOSS_COMPILED, LOSS_FUSED = 12.0, 10.0, 10.0, 8.0
LOSS_CHUNK_TOKENS = 1024.0  # of a loss taken in slices (Liger and others split by about this)
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
    weights, grads, states = _states(model, grid, recipe, plain * layers + table, experts * layers)
    return np.asarray(weights + grads + states)


@dataclass
class Layerwise:
    """What one mean layer takes on a GPU, per layout; pipeline and data-parallel choices do not change it."""

    plain: Array  # parameters but routed experts
    experts: Array
    biggest: Array  # parameters of the largest layer
    kept: Array  # saved for the backward pass by one microbatch
    widest: Array
    passing: Array


def layerwise(model: Model, grid: Grid, workload: Workload, recipe: Recipe) -> Layerwise:
    """Worked out once for each distinct slice of a layer."""
    keys, back = distinct(grid)
    plain, experts = mean_layer(model, keys)
    biggest = np.zeros(len(keys))
    for attention, mlp, _ in model.kinds:
        one, routed = layer_params_on_gpu(model, attention, mlp, keys)
        biggest = np.maximum(biggest, one + routed)
    kept = np.zeros((len(RECOMPUTE_CODE), len(keys)))
    for name, code in RECOMPUTE_CODE.items():
        if np.any(grid.recompute == code):
            kept[code] = activation_bytes(model, keys, workload, recipe, name)
    return Layerwise(
        plain=plain[back],
        experts=experts[back],
        biggest=biggest[back],
        kept=kept[grid.recompute, back],
        widest=widest_layer_bytes(model, keys, workload, recipe)[back],
        passing=passing_bytes(model, keys, workload, recipe)[back],
    )


@dataclass
class Moment:
    """What is present beside weights, states and gathered layers at one moment of a step."""

    activations: Array
    logits: Array
    casts: Array
    gradients: Array


@dataclass
class Stage:
    """One kind of stage before its peak is found."""

    which: int
    weights: Array
    optimizer: Array
    gathered: Array
    moments: list[Moment]

    def totals(self) -> list[Array]:
        """Allocated bytes at each moment."""
        still = self.weights + self.optimizer + self.gathered + WORKSPACE_BYTES
        return [still + m.activations + m.logits + m.casts + m.gradients for m in self.moments]


FIRST, LAST, SECOND = 0, 1, 2


def stages_of(model: Model, grid: Grid, workload: Workload, recipe: Recipe) -> list[tuple[str, Stage]]:
    """Each kind of stage; the second and the last mean something only where there are that many."""
    layer = layerwise(model, grid, workload, recipe)
    first_layers, last_layers = stage_layers(model, grid, recipe)
    first = _stage(model, grid, workload, recipe, layer, first_layers, FIRST)
    if not np.any(grid.pp > 1):
        return [("only", first)]
    found = [("first", first), ("last", _stage(model, grid, workload, recipe, layer, last_layers, LAST))]
    if np.any(grid.pp > 2):
        rest = np.ceil((model.layers - first_layers - last_layers) / np.maximum(grid.pp - 2, 1))
        found.append(("middle", _stage(model, grid, workload, recipe, layer, rest, SECOND)))
    return found


def stage_memories(model: Model, grid: Grid, workload: Workload, recipe: Recipe) -> list[tuple[str, Memory]]:
    """The peak of each kind of stage."""
    return [(name, _peak(grid, recipe, stage)) for name, stage in stages_of(model, grid, workload, recipe)]


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


def over_step(grid: Grid, recipe: Recipe, stage: Stage) -> list[tuple[str, dict[str, Array]]]:
    """A step of one stage, moment by moment in the order of time: named parts, as far as they are there by then."""
    still = {"weights": stage.weights, "optimizer": stage.optimizer, "gathered": stage.gathered}
    start, end, update, layer = stage.moments
    nothing = np.zeros(len(grid))
    between = Moment(nothing, nothing, nothing, end.gradients)
    found = []
    for name, m in (
        ("before the step", between), (MOMENTS[1], end), (MOMENTS[0], start), (MOMENTS[3], layer), (MOMENTS[2], update)
    ):  # fmt: skip
        parts = {"gradients": m.gradients, "activations": m.activations, "logits": m.logits, "casts": m.casts}
        slack = _slack(grid, recipe, m.activations + m.logits)
        rest = {"workspace": nothing + WORKSPACE_BYTES, "outside the allocator": _outside(grid), "slack": slack}
        found.append((name, {**still, **parts, **rest}))
    return found


def device_bytes(model: Model, grid: Grid, workload: Workload, recipe: Recipe) -> Array:
    """`memory(...).device` without its parts: what a search needs."""
    most = np.zeros(len(grid))
    for name, stage in stages_of(model, grid, workload, recipe):
        peak, moving = np.zeros(len(grid)), np.zeros(len(grid))
        for moment, total in zip(stage.moments, stage.totals(), strict=True):
            more = total > peak
            peak = np.where(more, total, peak)
            moving = np.where(more, moment.activations + moment.logits, moving)
        enough = {"last": 1, "middle": 2}.get(name, 0)
        used = peak + _slack(grid, recipe, moving)
        most = np.where(grid.pp > enough, np.maximum(most, used), most)
    return most + _outside(grid)


def _stage(
    model: Model, grid: Grid, workload: Workload, recipe: Recipe, layer: Layerwise, layers: Array, which: int
) -> Stage:
    table = model.vocab * model.hidden / grid.tp
    only = grid.pp == 1
    tables = np.where(only, table * (1 if model.tied else 2), table * (which != SECOND))
    tables = tables + np.where(only | (which == FIRST), model.learned_positions * model.hidden, 0)
    plain, experts = layer.plain * layers + tables, layer.experts * layers
    weights, grads, states = _states(model, grid, recipe, plain, experts)
    # In use and prefetched, 16 bit, and one unit's gradient before it is scattered.
    gathered = _gathered(model, grid, recipe, layer, table)
    casts = 2.0 * (plain + experts - np.where(only, table, 0)) * (recipe.weight_bytes == SINGLE) * (grid.zero < 3)
    casts = casts * trained_share(model, recipe)
    held, logits = _held(model, grid, workload, recipe, layer, layers, which)
    passing = _optimizer_temporary(recipe, states)
    moments = _moments(grid, recipe, grads, casts, held, logits, layer, table * trained_share(model, recipe), passing)
    return Stage(which, weights, states, gathered, moments)


def _gathered(model: Model, grid: Grid, recipe: Recipe, layer: Layerwise, table: Array) -> Array:
    """Weights put together for use: sharded layers, one ahead; 4-bit ones also written out in 16 bit, a matrix at a time."""
    unit = np.maximum(layer.biggest, table)
    if not recipe.lora_rank:
        return np.where(grid.zero >= 3, (GATHERED_LAYERS * HALF + recipe.grad_bytes) * unit, 0.0)
    whole = np.maximum(recipe.frozen_bytes * layer.biggest, HALF * table)
    wide = np.minimum(model.hidden * max(model.intermediate, model.expert_intermediate) / grid.tp, layer.biggest)
    wide = HALF * wide * (recipe.frozen_bytes < HALF)
    return np.where(grid.zero >= 3, GATHERED_LAYERS * whole, 0.0) + wide * (not recipe.eight_bit)


def _optimizer_temporary(recipe: Recipe, states: Array) -> Array:
    """What an optimizer without one fused kernel takes while it updates, as large as its second moment."""
    held = OPTIMIZERS.get(recipe.optimizer, 8.0) + (4.0 if recipe.master else 0.0)
    moment = OPTIMIZERS.get(recipe.optimizer, 8.0) / 2 / held if held else 0.0
    return states * moment * recipe.unfused_optimizer


def _held(
    model: Model, grid: Grid, workload: Workload, recipe: Recipe, layer: Layerwise, layers: Array, which: int
) -> tuple[Array, Array]:
    """Activations of all microbatches in flight, and the number of logits."""
    only = grid.pp == 1
    stage = {FIRST: np.zeros(len(grid)), SECOND: np.ones(len(grid)), LAST: grid.pp - 1.0}[which]
    flight = in_flight(grid, recipe.schedule, np.where(only, 0, stage))
    tokens = grid.mb * workload.seq / grid.cp
    held = layer.kept * layers * flight
    if recipe.offload == "activations":
        held = layer.kept * 2.0  # two layers in flight between GPU and host
    stream = model.hidden * tokens / np.where(grid.sp, grid.tp, 1)
    ends = only | (which == LAST)
    held = held + np.where(ends, (residual_bytes(recipe) + 2.0) * stream, 0.0)
    if recipe.dropout and which == FIRST:
        held = held + stream * flight  # the mask after the input table
    whole = np.minimum(tokens, LOSS_CHUNK_TOKENS) if recipe.chunked_loss else tokens
    return held, np.where(ends, model.vocab / grid.tp * whole, 0.0)


def _states(model: Model, grid: Grid, recipe: Recipe, plain: Array, experts: Array) -> tuple[Array, Array, Array]:
    """Weights, gradients and optimizer states."""
    data = (grid.dp * grid.cp).astype(float)
    shards = np.minimum(grid.shards, data)
    expert_shards = np.minimum(np.maximum(data * grid.tp / (grid.ep * grid.etp), 1.0), shards)
    params, spread = plain + experts, plain / shards + experts / expert_shards
    trained = trained_share(model, recipe)
    per_param = OPTIMIZERS.get(recipe.optimizer, 8.0)
    if recipe.weight_bytes == 2.0 and not recipe.master and recipe.optimizer == "adamw":
        per_param = 4.0  # states follow the weights' type
    per_param += 4.0 if recipe.master else 0.0
    if recipe.offload in ("optimizer", "params"):
        per_param = 0.0
    weights = recipe.weight_bytes * trained * np.where(grid.zero >= 3, spread, params)
    if recipe.lora_rank:  # tables and norms stay in 16 bit however the layers are kept
        tables = np.minimum(model.vocab * model.hidden / grid.tp * (1 if model.tied else 2), params)
        frozen = recipe.frozen_bytes * params + max(HALF - recipe.frozen_bytes, 0.0) * np.where(
            grid.pp == 1, tables, tables / 2
        )
        weights = weights + np.where(grid.zero >= 3, frozen * spread / np.maximum(params, 1.0), frozen)
    # Gradients that wait for the last microbatch of a pipeline are whole until then, whatever the stage is called.
    sharded = (grid.zero >= 2) & (grid.pp == 1) & (not recipe.scatter_once)
    grads = recipe.grad_bytes * np.where(sharded, spread, params) * trained
    return weights, grads, per_param * np.where(grid.zero >= 1, spread, params) * trained


def _moments(
    grid: Grid, recipe: Recipe, grads: Array, casts: Array, held: Array, logits: Array, layer: Layerwise, table: Array,
    passing: Array,
) -> list[Moment]:  # fmt: skip
    """The four moments at which a step may peak, in the order of MOMENTS."""
    zero = np.zeros(len(grid))
    full = grid.recompute == RECOMPUTE_CODE["full"]
    # Megatron keeps one gradient buffer for good; plain PyTorch frees gradients between steps (set_to_none).
    resident = recipe.style == "megatron"
    early = grads if resident else np.where(grid.micro_batches > 1, grads, zero)
    loss_b, loss_f = LOSS_BACKWARD, LOSS_FORWARD
    if recipe.fused:
        loss_b = loss_f = LOSS_FUSED if resident else LOSS_COMPILED
    head_cast = 2.0 * table * (recipe.weight_bytes == SINGLE) * (grid.zero < 3)
    back = early + (zero if resident else recipe.grad_bytes * table * (grid.pp == 1))
    running = held + np.where(full, layer.widest, zero) + layer.passing
    return [
        Moment(held, loss_b * logits, np.where(full, head_cast, casts), early),
        Moment(held, loss_f * logits, casts, early),
        Moment(zero, zero, passing, grads),
        Moment(running, 2.0 * logits, np.where(full, zero, casts), back),
    ]


def _outside(grid: Grid) -> Array:
    groups = (grid.tp > 1).astype(float) + (grid.dp * grid.cp > 1) + (grid.pp > 1) + (grid.ep > 1) + (grid.cp > 1)
    return CONTEXT_BYTES + COMMUNICATOR_BYTES * groups


def _slack(grid: Grid, recipe: Recipe, moving: Array) -> Array:
    """What the allocator reserves beyond what is allocated."""
    slack = SLACK_SHARE * moving
    if recipe.style == "megatron":
        return slack
    full = grid.recompute == RECOMPUTE_CODE["full"]
    return np.asarray(slack + SLACK_BYTES + np.where(full, SLACK_RECOMPUTE_SHARE, 0.0) * moving)


def _peak(grid: Grid, recipe: Recipe, stage: Stage) -> Memory:
    """The worst moment of a stage, with its parts."""
    totals = np.stack(stage.totals())
    worst = np.argmax(totals, axis=0)
    index = np.arange(len(grid))

    def at(name: str) -> Array:
        return np.asarray(np.stack([getattr(m, name) for m in stage.moments])[worst, index])

    acts, logits = at("activations"), at("logits")
    size = len(grid)
    return Memory(
        allocated=totals[worst, index], weights=stage.weights, gradients=at("gradients"), optimizer=stage.optimizer,
        activations=acts, logits=logits, casts=at("casts"), gathered=stage.gathered,
        workspace=np.full(size, WORKSPACE_BYTES), outside=_outside(grid), slack=_slack(grid, recipe, acts + logits),
        moment=worst.astype(float), stage=np.full(size, float(stage.which)),
    )  # fmt: skip
