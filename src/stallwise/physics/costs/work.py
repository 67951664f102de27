"""The work of a training step at nominal rates: everything about time except the constants of `constants`.

Splitting it so means that thousands of layouts, or hundreds of published runs, are worked out once and then timed with
any constants by a few vector operations.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from stallwise.physics.costs import exchange
from stallwise.physics.costs.activations import saved_bytes
from stallwise.physics.costs.collectives import Op
from stallwise.physics.costs.constants import sustained_ratio
from stallwise.physics.costs.gemm import Array, ideal_s
from stallwise.physics.costs.grid import Grid, distinct
from stallwise.physics.costs.layer import HALF, LayerWork, Slice, layer_work
from stallwise.physics.costs.shards import Shards, shards_of
from stallwise.physics.costs.topology import step_fabric_of
from stallwise.physics.specs.cluster import Cluster
from stallwise.physics.specs.layout import OPTIMIZERS
from stallwise.physics.specs.model import Model
from stallwise.physics.specs.recipe import Recipe, attention_kernel
from stallwise.physics.specs.workload import Workload

MIDDLE_YEAR = 2026.1  # software age is counted from here
YEARLY_FALL = 0.25  # expert layers' overhead shrinks by this share a year as frameworks fuse routing and sorting
OLDEST_YEARS, NEWEST_YEARS = -2.0, 1.0  # beyond these nobody knows the trend
# Share of a tensor-parallel message that nothing hides: forward, backward. Asynchronous: the backward's message runs
# beside the weight gradient. Ring: both are cut into pieces that take turns; the first piece and the slowdown stay.
TP_EXPOSED = {"none": (1.0, 1.0), "async": (1.0, 0.6), "ring": (0.5, 0.5)}
# Once a step: the loss comes back to the host, the norm of the gradients, the optimizer's launches per layer.
FIXED_STEP_S, FIXED_LAYER_S = 0.5e-3, 3.2e-5
FIXED_RANKS_S = 5.0e-3  # and among ranks: norms and losses are added up, each a small message the host waits for
# Parameters sent at once: Megatron-Core takes the larger of 40 M and 1 M a rank, others stay with the first.
BUCKET_PARAMS, BUCKET_PARAMS_PER_RANK = 4.0e7, 1.0e6
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
    routed: Array  # expert layers beside products and messages, forward and backward
    checkpoints: Array  # layers re-run under PyTorch's checkpoint function, which is itself Python
    unfused: Array  # 1 where attention writes its scores out
    full_share: Array  # of the layers that full recomputation covers
    tp_exposed_f: Array  # share of a tensor-parallel message that nothing hides
    tp_exposed_b: Array
    cp: Array
    expert_overlap: Array  # 1 where all-to-all runs beside another microbatch's passes
    expert_far: Array  # 1 where it uses the network cards, so that nothing else hides behind it there
    fixed_s: Array  # host work once a step that nothing overlaps

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
        saved = saved_bytes(model, keys, workload, recipe)[back] * per_stage * recipe.offload_share
        saved = saved / (gpu.host_byte_per_s * PCIE_SHARE)
        once["gather_f"], once["gather_b"] = once["gather_f"] + saved, once["gather_b"] + saved
    fabric = step_fabric_of(cluster)
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
        layers_per_stage=per_stage, routed=layer.routed * per_stage * _maturity(recipe),
        checkpoints=np.where((grid.recompute == 2) & (not recipe.fused), per_stage, 0.0),
        unfused=full(size, float(attention_kernel(recipe, gpu) == "unfused")),
        full_share=full(size, recipe.recompute_layer_share),
        tp_exposed_f=full(size, TP_EXPOSED[recipe.tp_overlap][0]), tp_exposed_b=full(size, TP_EXPOSED[recipe.tp_overlap][1]),
        expert_overlap=full(size, float(recipe.expert_overlap or recipe.schedule == "dualpipe")),
        expert_far=(grid.ep * grid.etp > cluster.domain).astype(float),
        cp=grid.cp.astype(float), imbalance=full(size, workload.moe_imbalance_ratio),
        fixed_s=FIXED_STEP_S + FIXED_LAYER_S * per_stage + FIXED_RANKS_S * (grid.gpus > 1),
    )  # fmt: skip


def _maturity(recipe: Recipe) -> float:
    """What is left of an expert layer's overhead in this release, against the middle of the published ones."""
    years = recipe.software_year - MIDDLE_YEAR if recipe.software_year else 0.0
    return float((1.0 - YEARLY_FALL) ** min(max(years, OLDEST_YEARS), NEWEST_YEARS))


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
    fabric = step_fabric_of(cluster)
    near_tp = np.minimum(keys.tp, cluster.domain)
    gather = exchange.seconds(fabric, Op.ALL_GATHER, layer.tp_bytes, keys.tp, near_tp)
    scatter = exchange.seconds(fabric, Op.REDUCE_SCATTER, layer.tp_bytes, keys.tp, near_tp)
    reduce = exchange.seconds(fabric, Op.ALL_REDUCE, layer.tp_bytes, keys.tp, near_tp)
    each = np.where(keys.sp, gather + scatter, reduce) * layer.tp_messages
    near_ep = np.maximum(np.minimum(keys.ep, cluster.domain // keys.etp), 1)
    moe = max(model.moe_layers / model.layers, 1e-9)
    rows = layer.ep_bytes / moe * _sent_once(model, keys.ep, keys.ep / near_ep)
    a2a = exchange.seconds(fabric, Op.ALL_TO_ALL, rows, keys.ep, near_ep) * moe
    near_cp = np.maximum(np.minimum(keys.cp, cluster.domain // keys.tp), 1)
    ring = exchange.seconds(fabric, Op.ALL_GATHER, layer.cp_bytes * keys.cp, keys.cp, near_cp)
    return each, each, 2.0 * a2a, ring


def _sent_once(model: Model, ranks: Any, domains: Any) -> Any:
    """Share of a token's copies that travel: one per rank it is meant for, and over the network one per domain."""
    chosen = max(model.experts_per_token, 1)
    places = np.where(domains > 1, domains, np.maximum(ranks, 1)).astype(np.float64)
    met = places * (1.0 - (1.0 - 1.0 / places) ** chosen)
    if (
        model.expert_groups and model.groups_per_token
    ):  # routing that is limited to a few groups of experts, each on its node
        met = np.minimum(met, model.groups_per_token * np.maximum(places / model.expert_groups, 1.0))
    return np.asarray(np.minimum(met / chosen, 1.0))


def _head(model: Model, part: Slice, cluster: Cluster, recipe: Recipe) -> tuple[Array, Array, Array, Array]:
    """The head's products (always 16-bit) and the loss over the vocabulary."""
    columns = model.vocab / part.tp
    dtype = "fp16" if recipe.precision == "fp16" else "bf16"
    forward = ideal_s(part.tokens, columns, model.hidden, cluster.gpu, dtype)
    backward = ideal_s(part.tokens, model.hidden, columns, cluster.gpu, dtype)
    if not recipe.lora_rank:  # a frozen head passes the gradient on and has none of its own
        backward = backward + ideal_s(columns, model.hidden, part.tokens, cluster.gpu, dtype)
    ratio = sustained_ratio(cluster.gpu.architecture, dtype, sustained=recipe.sustained)
    forward, backward = forward * ratio, backward * ratio
    loss = LOSS_PASSES * part.tokens * columns
    times = 1 + model.mtp_layers
    return forward * times, backward * times, loss * times, loss * times


def _once_a_step(model: Model, cluster: Cluster, grid: Grid, recipe: Recipe, own: Shards) -> dict[str, Array]:
    """Gradient and parameter traffic over data-parallel ranks, and the optimizer."""
    fabric = step_fabric_of(cluster)
    ranks = grid.dp * grid.cp
    near = np.maximum(np.minimum(cluster.domain // grid.tp, ranks), 1)
    zero = np.zeros(len(grid))
    fsdp = grid.zero >= 3
    weights = own.params * (recipe.frozen_bytes if recipe.lora_rank else recipe.gather_bytes)
    grads = own.params * (recipe.reduce_bytes or recipe.grad_bytes) * own.trainable_share
    group = np.where(grid.zero >= 1, np.minimum(grid.shards, ranks), ranks)
    near_all = np.minimum(near, ranks)
    near = np.minimum(near_all, group)
    # Traffic goes in buckets, each with its own latency: a layer under FSDP; Megatron's grow with the ranks.
    layers = np.maximum(model.layers / grid.pp, 1.0)
    bucket = np.maximum(BUCKET_PARAMS, BUCKET_PARAMS_PER_RANK * ranks if recipe.framework == "megatron" else 0.0)
    count = np.where(fsdp, layers, np.maximum(np.ceil(own.params / bucket), 1.0))
    gather = count * exchange.seconds(fabric, Op.ALL_GATHER, weights / count, group, near)
    scatter = count * exchange.seconds(fabric, Op.REDUCE_SCATTER, grads / count, group, near)
    if recipe.flat_gather:
        flat = count * exchange.seconds(fabric, Op.ALL_GATHER, weights / count, group, np.minimum(group, 1))
        gather, scatter = np.maximum(gather, flat), np.maximum(scatter, flat * grads / weights)
    if recipe.offload == "params":  # a rank's own share comes up from the host before every gather
        lifted = weights / np.maximum(group, 1) / (cluster.gpu.host_byte_per_s * PCIE_SHARE)
        gather = gather + np.where(fsdp, lifted, 0.0)
    reduce = count * exchange.seconds(fabric, Op.ALL_REDUCE, grads / count, ranks, near_all)
    # A replica group beyond the shard group adds up what each scattered (HSDP).
    copies = np.maximum(ranks // np.maximum(group, 1), 1)
    between = count * exchange.seconds(
        fabric,
        Op.ALL_REDUCE,
        grads / count / np.maximum(group, 1),
        copies,
        np.maximum(near_all // np.maximum(group, 1), 1),
    )
    state = OPTIMIZERS.get(recipe.optimizer, 8.0)
    touched = recipe.grad_bytes + 2 * state + recipe.weight_bytes + (8.0 if recipe.master else recipe.weight_bytes)
    update = own.optimizer_params * touched * own.trainable_share / cluster.gpu.achieved_byte_per_s
    if recipe.offload in ("optimizer", "params"):
        # Gradients go down, the host updates, weights come back; nothing of it overlaps the next forward.
        link = cluster.gpu.host_byte_per_s * PCIE_SHARE
        sent = own.optimizer_params * own.trainable_share * (recipe.grad_bytes + HALF)
        update = sent / link + own.optimizer_params * own.trainable_share * touched / HOST_BYTE_PER_S
    # Sharded gradients cannot wait for the last microbatch, unless they are kept whole until then: ZeRO-2 and 3 scatter
    # them after every one. With a pipeline they wait whatever the stage is called.
    often = (grid.zero >= 2) & (grid.pp == 1) & (not recipe.scatter_once)
    always = fsdp & (recipe.gather != "step")
    added = scatter + between
    return {
        "gather_f": np.where(always, gather, zero),
        "gather_b": np.where(always & (recipe.gather == "layer"), gather, zero),
        "scatter_b": np.where(often, added, zero),
        "reduce_once": np.where(often, zero, np.where(grid.zero >= 1, added, reduce)),
        # Weights that were not updated are where they were: only what a step trained is gathered after it.
        "gather_once": np.where(always | (grid.zero == 0), zero, gather * own.trainable_share),
        "optimizer": update,
    }
