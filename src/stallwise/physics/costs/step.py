"""Seconds of a step from its work and the constants: what overlaps, what waits, and the pipeline around it."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from stallwise.physics.costs.constants import INDEX, PRIORS, Array
from stallwise.physics.costs.work import Work

CHEAP_SHARE = 0.8  # of the memory-bound forward that selective recompute repeats when attention is fused
HIDING_SHARE = 0.5  # of a layer's products that run beside a tensor-parallel message when both are cut in pieces
STAGE_EXPOSED = 0.7  # of stage-to-stage messages: a stage seldom has other work ready while one arrives
CONTENTION = 0.30  # what a hidden collective still costs: it takes multiprocessors and bandwidth
EXPERT_EXPOSED = 0.1  # of an all-to-all that runs beside another microbatch: the first one has nothing beside it
CHECKPOINT_KERNELS = 90.0  # what re-running a layer costs the host beyond its kernels, in kernels (our H200 runs)
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

    def scaled(self, factor: float) -> Step:
        """All of it so many times as long."""
        return Step(**{f.name: getattr(self, f.name) * factor for f in fields(self)})

    def parts(self) -> dict[str, Array]:
        """All but the total."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "total"}


@dataclass
class Micro:
    """One microbatch on a mean stage, in seconds; f forward, b backward."""

    gemm_time_f: Array
    gemm_time_b: Array
    attention_f: Array
    attention_b: Array
    vector_f: Array
    vector_b: Array
    tp_f: Array
    tp_b: Array
    ep: Array  # each way
    cp_f: Array
    cp_b: Array
    again: Array  # what recomputation repeats
    head_gemm_time: Array
    head_vector: Array
    host: Array = None  # type: ignore[assignment]
    sharding: Array = None  # type: ignore[assignment]  # FSDP traffic that nothing hides

    @property
    def forward(self) -> Array:
        """One pass forward."""
        return self.gemm_time_f + self.attention_f + self.vector_f + self.tp_f + self.ep + self.cp_f

    @property
    def backward(self) -> Array:
        """One pass backward, recomputation apart."""
        return self.gemm_time_b + self.attention_b + self.vector_b + self.tp_b + self.ep + self.cp_b

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
        return self.head_gemm_time + self.head_vector


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
    p2p = np.where(work.pp > 1, 2 * work.p2p * work.vp * (m + work.pp - 1) * STAGE_EXPOSED * k[INDEX["messages"]], 0.0)
    once = _once(work, micro, k)
    fixed = work.fixed_s * k[INDEX["launch"]] / PRIORS["launch"].value  # the same host, the same Python
    whole = m * heaviest + fill + p2p + once + work.optimizer + fixed
    jitter = whole * k[INDEX["jitter"]] * np.log2(np.maximum(work.nodes, 1.0))
    return Step(
        total=whole + jitter,
        products=m * (micro.gemm_time_f + micro.gemm_time_b + micro.head_gemm_time / work.pp),
        attention=m * (micro.attention_f + micro.attention_b),
        vector=m * (micro.vector_f + micro.vector_b + micro.head_vector / work.pp),
        recompute=m * micro.again,
        tensor_parallel=m * (micro.tp_f + micro.tp_b),
        expert_parallel=m * 2 * micro.ep,
        context_parallel=m * (micro.cp_f + micro.cp_b),
        pipeline_messages=p2p,
        data_parallel=once + m * micro.sharding,
        optimizer=work.optimizer,
        host=m * micro.host + fixed,
        bubble=fill,
        imbalance=m * (heaviest - mean),
        jitter=jitter,
    )


def one_microbatch(work: Work, k: Array) -> Micro:
    """A microbatch's passes at the constants' rates."""
    products, attention, memory = k[INDEX["products"]], k[INDEX["attention"]], k[INDEX["memory"]]
    messages, experts = k[INDEX["messages"]], k[INDEX["experts"]]
    experts_f = work.expert_f * products
    gemm_time_f = work.gemm_f * products + experts_f
    gemm_time_b = (work.gemm_b + work.expert_b) * products
    attention_f = work.attn_f * attention + work.scan_f
    attention_b = work.attn_b * attention + work.scan_b
    routed = work.routed * experts / 3  # a third forward, two backward
    ring = work.cp_f * messages
    micro = Micro(
        gemm_time_f=gemm_time_f,
        gemm_time_b=gemm_time_b,
        attention_f=attention_f,
        attention_b=attention_b,
        vector_f=(work.vector_f + work.quant_f) * memory + routed,
        vector_b=(work.vector_b + work.quant_b) * memory + 2 * routed,
        # A message hides behind the products it feeds at most: over the network it outlasts them.
        tp_f=_message(work.tp_f * messages, work.tp_exposed_f, gemm_time_f),
        tp_b=_message(work.tp_b * messages, work.tp_exposed_b, gemm_time_b),
        ep=_expert_exchange(
            work, work.ep_f * messages * work.imbalance, gemm_time_f + gemm_time_b + attention_f + attention_b
        ),
        # Keys and values travel while the step before is worked on; the first step has nothing before it.
        cp_f=_ring(ring, attention_f, work.cp),
        cp_b=_ring(2 * ring, attention_b, work.cp),
        again=np.zeros(len(gemm_time_f)),
        head_gemm_time=(work.head_f + work.head_b) * products,
        head_vector=(work.head_vector_f + work.head_vector_b) * memory,
    )
    micro.again = _again(work, micro, experts_f)
    micro.host = _host(work, micro, k)
    micro.sharding = _sharding(work, micro, k)
    return micro


def _message(message: Array, exposed: Array, products: Array) -> Array:
    return np.asarray(np.maximum(message * exposed, message - HIDING_SHARE * products))


def _expert_exchange(work: Work, each: Array, beside: Array) -> Array:
    """What dispatch and combine of one pass add: all, or what outlasts the other microbatch's work; hidden ones drag."""
    left = np.maximum(each - beside / 2, EXPERT_EXPOSED * each)
    return np.asarray(np.where(work.expert_overlap > 0, left + CONTENTION * (each - left), each))


def _ring(message: Array, attention: Array, cp: Array) -> Array:
    return np.asarray(np.where(cp > 1, np.maximum(message - attention * (1 - 1 / cp), message / cp), 0.0))


def _again(work: Work, micro: Micro, experts_f: Array) -> Array:
    """What each recompute choice repeats."""
    cheap = CHEAP_SHARE * micro.vector_f
    light = np.where(work.unfused > 0, np.maximum(micro.attention_f, cheap), cheap)
    # By operator: attention and every second product are kept, all else is re-run; experts keep theirs.
    operator = np.where(work.unfused > 0, micro.attention_f, 0.0) + micro.vector_f + (micro.gemm_time_f - experts_f) / 2
    choices = [work.recompute == code for code in (2, 1, 3, 4)]
    whole = micro.forward * work.full_share
    return np.asarray(np.select(choices, [whole, light, light + experts_f + micro.ep, operator + micro.tp_f / 2], 0.0))


def _host(work: Work, micro: Micro, k: Array) -> Array:
    """A GPU that outruns its host waits for launches."""
    kernels = work.kernels_f + work.kernels_b + np.where(work.recompute == 2, work.kernels_f * work.full_share, 0.0)
    kernels = kernels + CHECKPOINT_KERNELS * work.checkpoints * work.full_share
    return np.asarray(np.maximum(kernels * k[INDEX["launch"]] - micro.busy, 0.0))


def _sharding(work: Work, micro: Micro, k: Array) -> Array:
    """FSDP: gathers and scatters hide behind the passes they run ahead of, and the host's idle time; hidden ones drag."""
    sent = _every_pass(work, k)
    waits = _exposed(sent, _window(work, micro, k), work.layers_per_stage)
    return waits + _drag(work, micro) * np.maximum(sent - waits, 0.0)


def _once(work: Work, micro: Micro, k: Array) -> Array:
    """Gradients and parameters that travel once a step, behind one microbatch's passes and what the host leaves idle."""
    sent = (work.reduce_once + work.gather_once) * k[INDEX["messages"]]
    window = _window(work, micro, k)
    each = _every_pass(work, k)  # every microbatch's own traffic hides there first
    left = window - (each - _exposed(each, window, work.layers_per_stage))
    waits = _exposed(sent, np.maximum(left, 0.0), work.layers_per_stage)
    return np.asarray(waits + _drag(work, micro) * np.maximum(sent - waits, 0.0))


def _every_pass(work: Work, k: Array) -> Array:
    return np.asarray((work.gather_f + work.gather_b + work.scatter_b) * k[INDEX["messages"]])


def _window(work: Work, micro: Micro, k: Array) -> Array:
    free = micro.busy - 2 * micro.ep * work.expert_far  # the network cards are taken while rows travel to experts
    return np.asarray((free + micro.host) * np.minimum(k[INDEX["hidden"]], 1.0) * work.overlap)


def _drag(work: Work, micro: Micro) -> Array:
    """What a hidden collective still costs the work beside it; while the GPU waits for its host it costs nothing."""
    busy = micro.busy / np.maximum(micro.busy + micro.host, 1e-12)
    return np.asarray(CONTENTION * np.minimum(work.overlap, 1.0) * busy)


def _index(names: Array) -> NDArray[np.int64]:
    return names.astype(np.int64)


def _exposed(message: Array, window: Array, layers: Array) -> Array:
    """What a message adds when it may hide behind `window`; the first layer's share has nothing before it."""
    return np.maximum(message - window, message / np.maximum(layers, 1.0))


def _idle_ratio(work: Work, micro: Micro) -> Array:
    """Idle time of the schedule over that of 1F1B: splitting weight gradients off fills most of it."""
    weight = micro.gemm_time_b / 2 / np.maximum(micro.busy, 1e-12)
    third = np.clip(1.0 - 2.0 * weight, 0.1, 1.0)
    same = np.ones_like(third)
    table = np.stack([same, third, SPLIT_IDLE_RATIO[2] * same, SPLIT_IDLE_RATIO[3] * same, third / 2])
    return np.asarray(np.take_along_axis(table, _index(work.schedule)[None, :], 0)[0])
