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
SPLIT_IDLE_RATIO = {2: 0.05, 3: 0.5}  # idle time left of 1F1B's: ZB-2p and ZB-V nearly none, V-Half and V-Min half


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


@dataclass
class Micro:
    """One microbatch on a mean stage, in seconds; f forward, b backward."""

    products_f: Array
    products_b: Array
    attention_f: Array
    attention_b: Array
    vector_f: Array
    vector_b: Array
    tp_f: Array
    tp_b: Array
    ep: Array  # each way
    cp: Array
    again: Array  # what recomputation repeats
    head_products: Array
    head_vector: Array
    host: Array = None  # type: ignore[assignment]
    sharding: Array = None  # type: ignore[assignment]  # FSDP traffic that nothing hides

    @property
    def forward(self) -> Array:
        """One pass forward."""
        return self.products_f + self.attention_f + self.vector_f + self.tp_f + self.ep + self.cp

    @property
    def backward(self) -> Array:
        """One pass backward, recomputation apart."""
        return self.products_b + self.attention_b + self.vector_b + self.tp_b + self.ep + 2 * self.cp

    @property
    def busy(self) -> Array:
        """What the GPU works on."""
        return self.forward + self.backward + self.again

    @property
    def total(self) -> Array:
        """With what it waits for; the head apart."""
        return self.busy + self.host + self.sharding

    @property
    def head(self) -> Array:
        """The last stage's extra work."""
        return self.head_products + self.head_vector


def time_step(work: Work, constants: Array) -> Step:
    """Times all layouts with these constants."""
    k, m = constants, work.micro_batches
    micro = one_microbatch(work, k)
    head = micro.head
    heaviest = np.where(
        work.pp > 1, np.maximum(micro.total * work.heavy, micro.total * work.last + head), micro.total + head
    )
    mean = micro.total + head / work.pp
    fill = (work.pp - 1) / work.vp * micro.total * _idle_ratio(work, micro)
    p2p = np.where(work.pp > 1, 2 * work.p2p * work.vp * (m + work.pp - 1) * k[INDEX["pp"]], 0.0)
    once = _once(work, micro, k)
    whole = m * heaviest + fill + p2p + once + work.optimizer
    jitter = whole * k[INDEX["jitter"]] * np.log2(np.maximum(work.nodes, 1.0)) * 0.5
    return Step(
        total=whole + jitter,
        products=m * (micro.products_f + micro.products_b + micro.head_products / work.pp),
        attention=m * (micro.attention_f + micro.attention_b),
        vector=m * (micro.vector_f + micro.vector_b + micro.head_vector / work.pp),
        recompute=m * micro.again,
        tensor_parallel=m * (micro.tp_f + micro.tp_b),
        expert_parallel=m * 2 * micro.ep,
        context_parallel=m * 3 * micro.cp,
        pipeline_messages=p2p,
        data_parallel=once + m * micro.sharding,
        optimizer=work.optimizer,
        host=m * micro.host,
        bubble=fill,
        imbalance=m * (heaviest - mean),
        jitter=jitter,
    )


def one_microbatch(work: Work, k: Array) -> Micro:
    """A microbatch's passes at the constants' rates."""
    gemm, attn = k[_index(work.gemm_name)], k[_index(work.attn_name)]
    vector, tp = k[_index(work.vector_name)], k[_index(work.tp_name)]
    quant, scan = k[INDEX["quantise"]], k[INDEX["scan"]]
    # Expert layers carry most of a framework's immaturity: what is not a product shrinks from release to release.
    age = np.where(work.moe_layers > 0, (1.0 - np.minimum(k[INDEX["drift"]], 0.9)) ** work.years, 1.0)
    grouped = gemm * k[_index(work.expert_name)]
    products_f = work.gemm_f * gemm + work.expert_f * grouped
    products_b = work.gemm_b * gemm + work.expert_b * grouped
    micro = Micro(
        products_f=products_f,
        products_b=products_b,
        attention_f=work.attn_f * attn + work.scan_f * scan,
        attention_b=work.attn_b * attn + work.scan_b * scan,
        vector_f=(work.vector_f * vector + work.quant_f * quant) * age,
        vector_b=(work.vector_b * vector + work.quant_b * quant) * age,
        # A message hides behind the products it feeds at most: over the network it outlasts them.
        tp_f=np.maximum(work.tp_f * tp, work.tp_f - HIDING_SHARE * products_f),
        tp_b=np.maximum(work.tp_b * tp, work.tp_b - HIDING_SHARE * products_b),
        ep=work.ep_f * k[INDEX["ep"]] * work.imbalance * age,
        cp=work.cp_f * k[INDEX["cp"]],
        again=np.zeros(len(gemm)),
        head_products=(work.head_f + work.head_b) * k[_sixteen_bit(work)],
        head_vector=(work.head_vector_f + work.head_vector_b) * vector,
    )
    micro.again = _again(work, micro, work.expert_f * grouped)
    micro.host = _host(work, micro, k, age)
    micro.sharding = _sharding(work, micro, k)
    return micro


def _again(work: Work, micro: Micro, experts_f: Array) -> Array:
    """What each recompute choice repeats."""
    unfused = work.attn_name == INDEX["attention.unfused"]
    cheap = CHEAP_SHARE * micro.vector_f + work.repeated * micro.products_f
    light = np.where(unfused, micro.attention_f, cheap)
    choices = [work.recompute == 2, work.recompute == 1, work.recompute == 3]
    return np.asarray(np.select(choices, [micro.forward, light, light + experts_f + micro.ep], 0.0))


def _host(work: Work, micro: Micro, k: Array, age: Array) -> Array:
    """A GPU that outruns its host waits for launches."""
    kernels = work.kernels_f + work.kernels_b + np.where(work.recompute == 2, work.kernels_f, 0.0)
    kernels = kernels + CHECKPOINT_KERNELS * work.checkpoints
    calls = kernels * k[_index(work.launch_name)] + work.moe_layers * k[_index(work.moe_launch_name)] * age
    return np.asarray(np.maximum(calls - micro.busy, 0.0))


def _sharding(work: Work, micro: Micro, k: Array) -> Array:
    """FSDP: gathers hide behind the pass before them, scatters behind the backward; hidden ones still drag."""
    hide = np.minimum(k[INDEX["dp.hidden"]], 1.0) * work.overlap
    waits = _exposed(work.gather_f, (micro.forward + micro.host / 3) * hide, work.layers_per_stage)
    sent = work.gather_b + work.scatter_b
    window = (micro.backward + micro.again + micro.host * 2 / 3) * hide
    waits = waits + _exposed(sent, window, work.layers_per_stage)
    return waits + _drag(work, k) * np.maximum(work.gather_f + sent - waits, 0.0)


def _once(work: Work, micro: Micro, k: Array) -> Array:
    """Gradients and parameters that travel once a step."""
    hide = np.minimum(k[INDEX["dp.hidden"]], 1.0) * work.overlap
    waits = _exposed(work.reduce_once, micro.backward * hide, work.layers_per_stage)
    waits = waits + _exposed(work.gather_once, micro.forward * hide, work.layers_per_stage)
    return waits + _drag(work, k) * np.maximum(work.reduce_once + work.gather_once - waits, 0.0)


def _drag(work: Work, k: Array) -> Array:
    return np.asarray(k[INDEX["dp.contention"]] * np.minimum(work.overlap, 1.0))


def _index(names: Array) -> NDArray[np.int64]:
    return names.astype(np.int64)


def _sixteen_bit(work: Work) -> NDArray[np.int64]:
    """The head stays in 16 bit whatever the layers use."""
    table = np.arange(len(INDEX))
    table[INDEX["gemm8.hopper"]] = INDEX["gemm.hopper"]
    table[[INDEX["gemm8.blackwell"], INDEX["gemm4.blackwell"]]] = INDEX["gemm.blackwell"]
    return np.asarray(table[_index(work.gemm_name)])


def _exposed(message: Array, window: Array, layers: Array) -> Array:
    """What a message adds when it may hide behind `window`; the first layer's share has nothing before it."""
    return np.maximum(message - window, message / np.maximum(layers, 1.0))


def _idle_ratio(work: Work, micro: Micro) -> Array:
    """Idle time of the schedule over that of 1F1B: splitting weight gradients off fills most of it."""
    weight = micro.products_b / 2 / np.maximum(micro.busy, 1e-12)
    third = np.clip(1.0 - 2.0 * weight, 0.1, 1.0)
    same = np.ones_like(third)
    table = np.stack([same, third, SPLIT_IDLE_RATIO[2] * same, SPLIT_IDLE_RATIO[3] * same, third / 2])
    return np.asarray(np.take_along_axis(table, _index(work.schedule)[None, :], 0)[0])
