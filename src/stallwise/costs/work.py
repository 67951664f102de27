"""The work of a training step at nominal rates: everything about time except the constants of `constants`.

Splitting it so means that thousands of layouts, or hundreds of published runs, are worked out once and then timed with
any constants by a few vector operations.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from stallwise.costs import exchange
from stallwise.costs.activations import every_other_product, saved_bytes
from stallwise.costs.collectives import Op
from stallwise.costs.constants import INDEX, attention_name, products_name
from stallwise.costs.gemm import Array, ideal_s
from stallwise.costs.grid import Grid, Recipe, distinct
from stallwise.costs.layer import HALF, LayerWork, Slice, layer_work
from stallwise.costs.shards import Shards, shards_of
from stallwise.specs.cluster import Cluster
from stallwise.specs.hardware import Gpu
from stallwise.specs.layout import OPTIMIZERS
from stallwise.specs.model import Model
from stallwise.specs.workload import Workload

MIDDLE_YEAR = 2026.1  # software age is counted from here
HOST_BYTE_PER_S = 40e9  # a GPU's share of its host's memory bandwidth while all of them update: 300 GB/s over eight
PCIE_SHARE = 0.85  # of the link that pinned copies reach (55 of 64 GB/s on our H200)
LOSS_PASSES = 12.0  # bytes per logit, forward: bf16 out, fp32 copy, maximum, sum, probability
SCHEDULES = {"1f1b": 0, "gpipe": 0, "interleaved": 0, "zb-h1": 1, "zb-1p": 1, "zb-h2": 2, "zb-2p": 2, "zb-v": 2,
             "v-half": 3, "v-min": 3, "dualpipe": 4}  # fmt: skip


@dataclass
class Work:
    """Per layout: seconds of one microbatch on an average stage at nominal rates, and what happens once a step."""

    gemm_f: Array
    gemm_b: Array
    attn_f: Array
    attn_b: Array
    scan_f: Array
    scan_b: Array
    expert_f: Array
    expert_b: Array
    vector_f: Array
    vector_b: Array
    quant_f: Array
    quant_b: Array
    kernels_f: Array
    kernels_b: Array
    tp_f: Array
    tp_b: Array
    ep_f: Array
    cp_f: Array
    head_f: Array  # products of the head on the last stage
    head_b: Array
    head_vector_f: Array
    head_vector_b: Array
    heavy: Array  # layers of the fullest stage over the mean
    last: Array  # layers of the last stage over the mean
    p2p: Array
    gather_f: Array  # FSDP: one pass's parameter gathers
    gather_b: Array
    scatter_b: Array
    reduce_once: Array
    gather_once: Array
    optimizer: Array
    micro_batches: Array
    pp: Array
    vp: Array
    recompute: Array
    schedule: Array
    nodes: Array
    overlap: Array
    layers_per_stage: Array
    imbalance: Array
    moe_layers: Array
    checkpoints: Array  # layers re-run under PyTorch's checkpoint function, which is itself Python
    launch_name: Array
    moe_launch_name: Array
    expert_name: Array
    repeated: Array  # share of the forward products that selective recompute repeats
    years: Array  # of software since the middle of the shipped runs
    gemm_name: Array
    attn_name: Array
    vector_name: Array
    tp_name: Array

    def take(self, which: Any) -> Work:
        """A part of the layouts."""
        return Work(**{f.name: getattr(self, f.name)[which] for f in fields(self)})


def concatenate(parts: list[Work]) -> Work:
    """Many models' layouts in one."""
    return Work(**{f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Work)})


def average_layer(model: Model, part: Slice, cluster: Cluster, recipe: Recipe) -> LayerWork:
    """The mean layer of a model, a prediction block's share included."""
    total: LayerWork | None = None
    for attention, mlp, layers in model.kinds:
        one = layer_work(model, attention, mlp, part, cluster.gpu, recipe).times(layers / model.layers)
        total = one if total is None else total + one
    assert total is not None
    if model.mtp_layers:
        last = model.layers - 1
        block = layer_work(model, model.attention_kind(last), model.mlp_kind(last), part, cluster.gpu, recipe)
        total = total + block.times(model.mtp_layers / model.layers)
    return total


def step_work(model: Model, cluster: Cluster, workload: Workload, grid: Grid, recipe: Recipe) -> Work:
    """Everything a step of these layouts does."""
    if model.experts and recipe.precision == "nvfp4":
        recipe = replace(recipe, precision="mxfp8")  # 4-bit recipes keep routed experts' small products in 8 bit
    keys, back = distinct(grid)
    part = Slice(
        tokens=keys.mb * workload.seq / keys.cp,
        seq=float(workload.seq),
        tp=keys.tp.astype(float),
        cp=keys.cp.astype(float),
        ep=keys.ep.astype(float),
        etp=keys.etp.astype(float),
        sp=keys.sp.astype(float),
    )
    layer = average_layer(model, part, cluster, recipe)
    messages = _messages(layer, keys, cluster, model)
    head = _head(model, part, cluster, recipe)
    layer = layer.at(back)
    tp_f, tp_b, ep_f, cp_f = (x[back] for x in messages)
    head_f, head_b, head_vf, head_vb = (x[back] for x in head)
    gpu = cluster.gpu
    rate = gpu.achieved_byte_per_s
    per_stage = model.layers / grid.pp
    heavy, last = stage_shape(model, grid, recipe)
    once = _once_a_step(model, cluster, grid, recipe, shards_of(model, grid, recipe))
    if recipe.offload == "activations":
        # What a pass saves leaves for the host behind it and comes back behind the backward.
        saved = saved_bytes(model, keys, workload, recipe)[back] * per_stage / (gpu.pcie_byte_per_s * PCIE_SHARE)
        once["gather_f"], once["gather_b"] = once["gather_f"] + saved, once["gather_b"] + saved
    fabric = exchange.fabric_of(cluster)
    span = grid.tp * grid.cp * grid.dp
    boundary = HALF * model.hidden * workload.seq * grid.mb / grid.cp / np.where(grid.sp, grid.tp, 1)
    p2p = exchange.seconds(
        fabric, Op.SEND_RECV, boundary, np.where(grid.pp > 1, 2, 1), np.where(span < cluster.domain, 2, 1)
    )
    size = len(grid)
    full = np.full
    return Work(
        gemm_f=layer.gemm_f * per_stage, gemm_b=layer.gemm_b * per_stage,
        attn_f=layer.attn_f * per_stage, attn_b=layer.attn_b * per_stage,
        scan_f=layer.scan_f * per_stage, scan_b=layer.scan_b * per_stage,
        expert_f=layer.expert_f * per_stage, expert_b=layer.expert_b * per_stage,
        vector_f=layer.vector_f * per_stage / rate, vector_b=layer.vector_b * per_stage / rate,
        quant_f=layer.quant_f * per_stage / rate, quant_b=layer.quant_b * per_stage / rate,
        kernels_f=layer.kernels_f * per_stage, kernels_b=layer.kernels_b * per_stage,
        tp_f=tp_f * per_stage, tp_b=tp_b * per_stage, ep_f=ep_f * per_stage, cp_f=cp_f * per_stage,
        head_f=head_f, head_b=head_b, head_vector_f=head_vf / rate, head_vector_b=head_vb / rate,
        heavy=heavy, last=last, p2p=p2p, **once,
        micro_batches=grid.micro_batches.astype(float), pp=grid.pp.astype(float), vp=grid.vp.astype(float),
        recompute=grid.recompute.astype(float), schedule=full(size, float(SCHEDULES.get(recipe.schedule, 0))),
        nodes=np.maximum(grid.gpus / cluster.gpus_per_node, 1.0), overlap=full(size, float(recipe.overlap)),
        layers_per_stage=per_stage, moe_layers=per_stage * (model.moe_layers / model.layers),
        checkpoints=np.where((grid.recompute == 2) & (not recipe.fused), per_stage, 0.0),
        repeated=full(size, 0.5 if every_other_product(recipe) and not model.experts else 0.0),
        years=full(size, recipe.software_year - MIDDLE_YEAR if recipe.software_year else 0.0),
        imbalance=full(size, workload.moe_imbalance_ratio), **_names(cluster, recipe, size),
    )  # fmt: skip


def _names(cluster: Cluster, recipe: Recipe, size: int) -> dict[str, Array]:
    """Which constant scales which part, as indices."""
    kind = cluster.gpu.architecture
    overlapped = recipe.overlap and recipe.fused and _splits_products(cluster.gpu)
    chosen = {
        "gemm_name": products_name(kind, recipe.precision),
        "attn_name": attention_name(kind, recipe.attention),
        "vector_name": "vector.fused" if recipe.fused else "vector.eager",
        "tp_name": "tp.overlapped" if overlapped else "tp.plain",
        "launch_name": "launch.fused" if recipe.fused else "launch.eager",
        "moe_launch_name": "launch.moe.grace" if cluster.domain > 8 else "launch.moe",
        "expert_name": "experts.blackwell" if kind == "blackwell" else "experts.hopper",
    }
    return {column: np.full(size, float(INDEX[name])) for column, name in chosen.items()}


def _splits_products(gpu: Gpu) -> bool:
    """Interleaving a gather with the product that needs it came with Hopper (Transformer Engine's user buffers)."""
    return gpu.architecture not in ("volta", "ampere", "turing")


def stage_shape(model: Model, grid: Grid, recipe: Recipe) -> tuple[Array, Array]:
    """Layers of the fullest and of the last stage, over the mean."""
    chunks = grid.pp * grid.vp
    fewer = np.full(len(grid), recipe.end_stage_layers)
    # 126 or 62 layers are chosen so that embedding and head stand in for one layer each.
    stands_in = (model.layers % chunks != 0) & ((model.layers + 2) % chunks == 0)
    fewer = np.where(stands_in, 1, fewer)
    most = np.ceil((model.layers + 2 * fewer) / chunks) * grid.vp
    uneven = (model.layers % chunks != 0) & (fewer == 0)
    most = np.where(uneven, np.ceil(model.layers / grid.pp), most)
    mean = model.layers / grid.pp
    heavy = np.where(grid.pp > 1, np.maximum(most / mean, 1.0), 1.0)
    spare = most * grid.pp - model.layers  # an uneven split leaves the last stage short
    last = np.where(uneven, most - np.minimum(spare, most - 1), most - fewer) / mean
    return heavy, np.where(grid.pp > 1, last, 1.0)


def _messages(layer: LayerWork, keys: Grid, cluster: Cluster, model: Model) -> tuple[Array, Array, Array, Array]:
    """Seconds of tensor-, expert- and context-parallel traffic in one mean layer."""
    fabric = exchange.fabric_of(cluster)
    near_tp = np.minimum(keys.tp, cluster.domain)
    gather = exchange.seconds(fabric, Op.ALL_GATHER, layer.tp_bytes, keys.tp, near_tp)
    scatter = exchange.seconds(fabric, Op.REDUCE_SCATTER, layer.tp_bytes, keys.tp, near_tp)
    reduce = exchange.seconds(fabric, Op.ALL_REDUCE, layer.tp_bytes, keys.tp, near_tp)
    each = np.where(keys.sp, gather + scatter, reduce) * layer.tp_messages
    near_ep = np.maximum(np.minimum(keys.ep, cluster.domain // keys.etp), 1)
    moe = max(model.moe_layers / model.layers, 1e-9)
    a2a = exchange.seconds(fabric, Op.ALL_TO_ALL, layer.ep_bytes / moe, keys.ep, near_ep) * moe
    near_cp = np.maximum(np.minimum(keys.cp, cluster.domain // keys.tp), 1)
    ring = exchange.seconds(fabric, Op.ALL_GATHER, layer.cp_bytes * keys.cp, keys.cp, near_cp)
    return each, each, 2.0 * a2a, ring


def _head(model: Model, part: Slice, cluster: Cluster, recipe: Recipe) -> tuple[Array, Array, Array, Array]:
    """The head's products (always 16-bit) and the loss over the vocabulary."""
    columns = model.vocab / part.tp
    forward = ideal_s(part.tokens, columns, model.hidden, cluster.gpu, "bf16")
    backward = ideal_s(part.tokens, model.hidden, columns, cluster.gpu, "bf16") + ideal_s(
        columns, model.hidden, part.tokens, cluster.gpu, "bf16"
    )
    loss = LOSS_PASSES * part.tokens * columns
    times = 1 + model.mtp_layers
    return forward * times, backward * times, loss * times, loss * times


def _once_a_step(model: Model, cluster: Cluster, grid: Grid, recipe: Recipe, own: Shards) -> dict[str, Array]:
    """Gradient and parameter traffic over data-parallel ranks, and the optimizer."""
    fabric = exchange.fabric_of(cluster)
    ranks = grid.dp * grid.cp
    near = np.maximum(np.minimum(cluster.domain // grid.tp, ranks), 1)
    zero = np.zeros(len(grid))
    fsdp = grid.zero >= 3
    weights, grads = own.params * HALF, own.params * recipe.grad_bytes
    if recipe.lora_rank:
        grads = grads * own.trainable_share
    group = np.where(fsdp, grid.shards, ranks)
    near = np.minimum(1 if recipe.flat_gather else near, group)
    gather = exchange.seconds(fabric, Op.ALL_GATHER, weights, group, near)
    scatter = exchange.seconds(fabric, Op.REDUCE_SCATTER, grads, group, near)
    reduce = exchange.seconds(fabric, Op.ALL_REDUCE, grads, ranks, np.minimum(near, ranks))
    # A replica group beyond the shard group adds up what each scattered (HSDP).
    copies = np.maximum(ranks // np.maximum(group, 1), 1)
    between = exchange.seconds(
        fabric, Op.ALL_REDUCE, grads / np.maximum(group, 1), copies, np.maximum(near // group, 1)
    )
    regather = np.where(grid.zero >= 3, gather, 0.0)
    state = OPTIMIZERS.get(recipe.optimizer, 8.0)
    touched = recipe.grad_bytes + 2 * state + recipe.weight_bytes + (8.0 if recipe.master else recipe.weight_bytes)
    update = own.optimizer_params * touched * own.trainable_share / cluster.gpu.achieved_byte_per_s
    if recipe.offload in ("optimizer", "params"):
        # Gradients go down, the host updates, weights come back; nothing of it overlaps the next forward.
        link = cluster.gpu.pcie_byte_per_s * PCIE_SHARE
        sent = own.optimizer_params * own.trainable_share * (recipe.grad_bytes + HALF)
        update = sent / link + own.optimizer_params * own.trainable_share * touched / HOST_BYTE_PER_S
    # Sharded gradients cannot wait for the last microbatch: ZeRO-2 and 3 scatter them after every one.
    often = grid.zero >= 2
    return {
        "gather_f": np.where(fsdp, gather, zero),
        "gather_b": np.where(fsdp, regather, zero),
        "scatter_b": np.where(often, scatter + np.where(fsdp, between, zero), zero),
        "reduce_once": np.where(often, zero, np.where(grid.zero == 1, scatter, reduce)),
        "gather_once": np.where(fsdp | (grid.zero == 0), zero, gather),
        "optimizer": update,
    }
