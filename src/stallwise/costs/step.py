"""Seconds of a step from its work and the constants: what overlaps, what waits, and the pipeline around it."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from stallwise.costs.constants import INDEX, Array
from stallwise.costs.work import Work

CHEAP_SHARE = 0.8  # of the memory-bound forward that selective recompute repeats when attention is fused
HIDING_SHARE = 0.5  # of a layer's products that run beside a tensor-parallel message when both are cut in pieces
CHECKPOINT_KERNELS = 100.0  # what re-running a layer costs the host beyond its kernels, in kernels (our H200 runs)


@dataclass
class Step:
    """Where a step's seconds go; the parts sum to `total`."""

    total: Array
    products: Array
    attention: Array
    vector: Array
    recompute: Array
    tensor_parallel: Array
    expert_parallel: Array
    context_parallel: Array
    pipeline_messages: Array
    data_parallel: Array
    optimizer: Array
    host: Array  # launches the GPU waits for
    bubble: Array
    imbalance: Array  # fullest stage against the mean
    jitter: Array

    def parts(self) -> dict[str, Array]:
        """All but the total."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "total"}


def time_step(work: Work, constants: Array) -> Step:
    """Times all layouts with these constants."""
    k = constants
    gemm, attn = k[work.gemm_name.astype(int)], k[work.attn_name.astype(int)]
    vector, tp = k[work.vector_name.astype(int)], k[work.tp_name.astype(int)]
    quant = k[INDEX["quantise"]]
    # Expert layers carry most of a framework's immaturity: what is not a product shrinks from release to release.
    age = np.where(work.moe_layers > 0, (1.0 - np.minimum(k[INDEX["drift"]], 0.9)) ** work.years, 1.0)
    grouped = gemm * k[work.expert_name.astype(int)]
    products_f = work.gemm_f * gemm + work.expert_f * grouped
    products_b = work.gemm_b * gemm + work.expert_b * grouped
    scan = k[INDEX["scan"]]
    attn_f, attn_b = work.attn_f * attn + work.scan_f * scan, work.attn_b * attn + work.scan_b * scan
    vector_f = (work.vector_f * vector + work.quant_f * quant) * age
    vector_b = (work.vector_b * vector + work.quant_b * quant) * age
    # A message hides behind the products it feeds at most: over the network it outlasts them.
    tp_f = np.maximum(work.tp_f * tp, work.tp_f - HIDING_SHARE * products_f)
    tp_b = np.maximum(work.tp_b * tp, work.tp_b - HIDING_SHARE * products_b)
    ep_f = work.ep_f * k[INDEX["ep"]] * work.imbalance * age
    cp_f = work.cp_f * k[INDEX["cp"]]
    compute_f = products_f + attn_f + vector_f
    compute_b = products_b + attn_b + vector_b
    forward = compute_f + tp_f + ep_f + cp_f
    light = np.where(
        work.attn_name == INDEX["attention.unfused"], attn_f, CHEAP_SHARE * vector_f + work.repeated * products_f
    )
    experts = light + work.expert_f * grouped + ep_f
    again = np.select([work.recompute == 2, work.recompute == 1, work.recompute == 3], [forward, light, experts], 0.0)
    backward = compute_b + tp_b + ep_f + 2 * cp_f
    head_scale = k[_sixteen_bit(work)]
    head = (work.head_f + work.head_b) * head_scale + (work.head_vector_f + work.head_vector_b) * vector
    # A GPU that outruns its host waits for launches.
    kernels = work.kernels_f + work.kernels_b + np.where(work.recompute == 2, work.kernels_f, 0.0)
    busy = forward + backward + again
    kernels = kernels + CHECKPOINT_KERNELS * work.checkpoints
    calls = kernels * k[work.launch_name.astype(int)] + work.moe_layers * k[work.moe_launch_name.astype(int)] * age
    host = np.maximum(calls - busy, 0.0)
    # FSDP: gathers hide behind the pass before them, scatters behind the backward.
    hide = np.minimum(k[INDEX["dp.hidden"]], 1.0) * work.overlap
    fsdp = _exposed(work.gather_f, (forward + host / 3) * hide, work.layers_per_stage) + _exposed(
        work.gather_b + work.scatter_b, (backward + again + host * 2 / 3) * hide, work.layers_per_stage
    )
    drag = k[INDEX["dp.contention"]] * np.minimum(work.overlap, 1.0)
    fsdp = fsdp + drag * np.maximum(work.gather_f + work.gather_b + work.scatter_b - fsdp, 0.0)
    micro = busy + host + fsdp
    heaviest = np.where(work.pp > 1, np.maximum(micro * work.heavy, micro * work.last + head), micro + head)
    mean = micro + head / work.pp
    fill = (work.pp - 1) / work.vp * micro * _idle_ratio(work, products_b)
    p2p = np.where(work.pp > 1, 2 * work.p2p * work.vp * (work.micro_batches + work.pp - 1) * k[INDEX["pp"]], 0.0)
    once = _exposed(work.reduce_once, backward * hide, work.layers_per_stage) + _exposed(
        work.gather_once, forward * hide, work.layers_per_stage
    )
    once = once + drag * np.maximum(work.reduce_once + work.gather_once - once, 0.0)
    m = work.micro_batches
    whole = m * heaviest + fill + p2p + once + work.optimizer
    jitter = whole * k[INDEX["jitter"]] * np.log2(np.maximum(work.nodes, 1.0)) * 0.5
    return Step(
        total=whole + jitter,
        products=m * (products_f + products_b + (work.head_f + work.head_b) * head_scale / work.pp),
        attention=m * (attn_f + attn_b),
        vector=m * (vector_f + vector_b + (work.head_vector_f + work.head_vector_b) * vector / work.pp),
        recompute=m * again,
        tensor_parallel=m * (tp_f + tp_b),
        expert_parallel=m * 2 * ep_f,
        context_parallel=m * 3 * cp_f,
        pipeline_messages=p2p,
        data_parallel=once + m * fsdp,
        optimizer=work.optimizer,
        host=m * host,
        bubble=fill,
        imbalance=m * (heaviest - mean),
        jitter=jitter,
    )


def _sixteen_bit(work: Work) -> NDArray[np.int64]:
    """The head stays in 16 bit whatever the layers use."""
    swap = {INDEX["gemm8.hopper"]: INDEX["gemm.hopper"]}
    swap |= {INDEX[n]: INDEX["gemm.blackwell"] for n in ("gemm8.blackwell", "gemm4.blackwell")}
    table = np.arange(len(INDEX))
    for eight, sixteen in swap.items():
        table[eight] = sixteen
    return np.asarray(table[work.gemm_name.astype(int)])


def _exposed(message: Array, window: Array, layers: Array) -> Array:
    """What a message adds when it may hide behind `window`; the first layer's share has nothing before it."""
    return np.maximum(message - window, message / np.maximum(layers, 1.0))


def _idle_ratio(work: Work, products_b: Array) -> Array:
    """Idle time of the schedule over that of 1F1B: splitting weight gradients off fills most of it."""
    weight = products_b / 2 / np.maximum(work.gemm_f + work.gemm_b + work.expert_f + work.expert_b, 1e-12)
    third = np.clip(1.0 - 2.0 * weight, 0.1, 1.0)
    table = np.stack([np.ones_like(third), third, np.full_like(third, 0.05), 0.5 * np.ones_like(third), third / 2])
    return np.asarray(np.take_along_axis(table, work.schedule.astype(int)[None, :], 0)[0])
