"""What one layer does to one microbatch on one GPU: products, attention, memory traffic, kernels and messages."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from stallwise.physics.costs import adapters
from stallwise.physics.costs.attention import attention_s
from stallwise.physics.costs.constants import sustained_ratio
from stallwise.physics.costs.gemm import Array, ideal_s
from stallwise.physics.costs.grouped import grouped_gemm_s
from stallwise.physics.specs.hardware import Gpu
from stallwise.physics.specs.model import DENSE, LINEAR, MOE, NONE, Model
from stallwise.physics.specs.recipe import Recipe, attention_kernel

HALF = 2.0  # bytes of a bf16 or fp16 value
# How often an unfused attention passes over its square of scores: product out, mask, softmax, dropout, back in.
UNFUSED_PASSES_FUSED_SOFTMAX = 6.0  # Megatron's fused scale-mask-softmax, then dropout
UNFUSED_PASSES_EAGER = 22.0  # plain PyTorch: mask, fp32 copy, softmax, cast, each its own kernel
# Kernels one layer launches, forward; backward has about twice as many. Counted in profiler traces.
KERNELS_FUSED, KERNELS_EAGER, KERNELS_CAST = 16.0, 28.0, 6.0
# What one collective costs the host in kernels: the group's bookkeeping, two stream waits, its own autograd function.
KERNELS_MESSAGE = 2.0
# 16-bit passes over the residual stream of an eager sublayer: a norm in fp32 is a chain of five kernels; rotary in fp32.
EAGER_PASSES, EAGER_ROTARY = 9.0, 7.0
EXPERT_LAYER_S = 1.5e-3  # one expert layer's routing and waiting for counts, forward and backward
EXPERT_ROW_S = 1.2e-8  # and each routed row's index work: sort, scatter map, combine weights
MERGE_BYTES = 14.0  # a ring step adds its part to the output: both read in fp32 and 16 bit, one written
UNFUSED_ACTIVATION = 14.0  # extra passes over the inner width where an activation is a chain of kernels
# Bytes per value to make its 8-bit copies. One scale a tensor: read 2 for the largest, read 2, write 1. By row the
# transposed copy has scales of its own, and a transposing cast reaches a third of the bandwidth at best (H200: a tenth
# without fusion). By block both copies share a pass. MX: scales form while the value is read.
QUANTISE_BYTES = {"tensorwise": 5.0, "rowwise": 16.0, "blockwise": 8.0, "mx": 6.0}
# Products with a scale per block add partial sums in fp32 registers; one per row costs nothing (H200).
SCALED_GEMM_RATIO = {"tensorwise": 1.0, "rowwise": 1.0, "blockwise": 1.15, "mx": 1.0}
CHUNKED_SCAN_SHARE = 0.06  # of peak that a chunked state-space scan reaches: small products and exponentials


@dataclass
class LayerWork:
    """Seconds at nominal rates, bytes and counts for one microbatch; f forward, b backward."""

    gemm_f: Array
    gemm_b: Array
    attn_f: Array
    attn_b: Array
    scan_f: Array
    scan_b: Array
    expert_f: Array  # grouped products, apart from the plain ones
    expert_b: Array
    vector_f: Array  # bytes moved by norms, activations, residuals
    vector_b: Array
    quant_f: Array  # bytes moved to make fp8 copies
    quant_b: Array
    kernels_f: Array
    kernels_b: Array
    tp_bytes: Array  # of one tensor-parallel message (gathered size); four of them a layer
    tp_messages: Array
    ep_bytes: Array  # one all-to-all; dispatch and combine, forward and backward
    cp_bytes: Array  # keys and values passed on once
    routed: Array  # seconds an expert layer costs beside products and messages, forward and backward

    def __add__(self, other: LayerWork) -> LayerWork:
        return LayerWork(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def times(self, factor: Any) -> LayerWork:
        """All of it so many times; message sizes become totals."""
        return LayerWork(**{f.name: getattr(self, f.name) * factor for f in fields(self)})

    def at(self, which: Any) -> LayerWork:
        """Gathered by index."""
        return LayerWork(**{f.name: getattr(self, f.name)[which] for f in fields(self)})


@dataclass(frozen=True)
class Slice:
    """The part of a microbatch one GPU sees: arrays over layouts."""

    tokens: Array  # of a tensor-parallel group: mb x seq / cp
    seq: float
    tp: Array
    cp: Array
    ep: Array
    etp: Array
    sp: Array  # 1 where norms and residuals are split over TP too


def _gemm(
    m: Any, n: Any, k: Any, gpu: Gpu, dtype: str, *, wgrad: bool = True, sustained: bool = True
) -> tuple[Array, Array]:
    """Forward and backward (both gradients) seconds of a linear layer."""
    forward = ideal_s(m, n, k, gpu, dtype)
    backward = ideal_s(m, k, n, gpu, dtype)
    if wgrad:
        backward = backward + ideal_s(n, k, m, gpu, dtype)
    ratio = sustained_ratio(gpu.architecture, dtype, sustained=sustained)
    return forward * ratio, backward * ratio


def _grouped(
    rows: Any, experts: Any, n: Any, k: Any, gpu: Gpu, dtype: str, *, wgrad: bool, sustained: bool = True
) -> tuple[Array, Array]:
    """The same for one matrix per expert, every expert meeting `rows`."""
    forward = grouped_gemm_s(rows, experts, n, k, gpu, dtype)
    backward = grouped_gemm_s(rows, experts, k, n, gpu, dtype)
    if wgrad:
        backward = backward + grouped_gemm_s(n, experts, k, rows, gpu, dtype)
    ratio = sustained_ratio(gpu.architecture, dtype, sustained=sustained)
    return forward * ratio, backward * ratio


def layer_work(model: Model, attention: str, mlp: str, part: Slice, gpu: Gpu, recipe: Recipe) -> LayerWork:
    """One layer of this kind."""
    zero = np.zeros(part.tokens.shape)
    work = LayerWork(*[zero.copy() for _ in fields(LayerWork)])
    norm_split = np.where(part.sp > 0, part.tp, 1.0)
    sublayers = (attention != NONE) + (mlp != NONE)
    # Residual stream: each sublayer reads it and the branch, writes the sum and its norm; eager code takes more passes.
    passes = 4.0 if recipe.fused else EAGER_PASSES
    width = 4.0 if recipe.autocast else HALF
    work.vector_f += width * passes * sublayers * model.hidden * part.tokens / norm_split
    work.vector_b += width * 1.5 * passes * sublayers * model.hidden * part.tokens / norm_split
    if recipe.autocast:  # each weight is read in fp32 and written in bf16; its gradient the other way
        cast = (model.attention_params(attention) + model.active_mlp_params(mlp)) / part.tp
        work.vector_f += 6.0 * cast
        work.vector_b += 6.0 * cast
        work.kernels_f += KERNELS_CAST
    work.kernels_f += (KERNELS_FUSED if recipe.fused else KERNELS_EAGER) * sublayers / 2
    if attention == LINEAR:
        _linear(work, model, part, gpu, recipe)
    elif attention != NONE:
        _attention(work, model, attention, part, gpu, recipe)
    if mlp == DENSE:
        _dense_mlp(work, model, model.intermediate, part, gpu, recipe)
    elif mlp == MOE:
        _experts(work, model, part, gpu, recipe)
    if not recipe.eight_bit:
        work.quant_f, work.quant_b = zero, zero.copy()
    else:
        work.kernels_f += 2.0 * sublayers * 2
    work.kernels_f += KERNELS_MESSAGE * sublayers * (part.tp > 1) * np.where(part.sp > 0, 2.0, 1.0)
    work.kernels_b = 2.0 * work.kernels_f
    # Without sequence parallelism an all-reduce carries each sublayer's output, with it a gather and a scatter.
    work.tp_bytes = HALF * model.hidden * part.tokens * (part.tp > 1)
    work.tp_messages = np.full(zero.shape, float(sublayers)) * (part.tp > 1)
    return work


def _linears(
    work: LayerWork, shapes: list[tuple[Any, Any]], part: Slice, gpu: Gpu, recipe: Recipe, *, adapted: bool = False
) -> None:
    for n, k in shapes:
        forward, backward = _gemm(
            part.tokens, n, k, gpu, recipe.precision, wgrad=not recipe.lora_rank, sustained=recipe.sustained
        )
        ratio = SCALED_GEMM_RATIO[recipe.scales] if recipe.eight_bit else 1.0
        work.gemm_f += forward * ratio
        work.gemm_b += backward * ratio
        work.quant_f += QUANTISE_BYTES[recipe.scales] * part.tokens * k
        work.quant_b += QUANTISE_BYTES[recipe.scales] * part.tokens * n
        _widen(work, n * k, recipe)
        if adapted:
            there, back, kernels = adapters.traffic(part.tokens, n, k, recipe)
            work.vector_f += there
            work.vector_b += back
            work.kernels_f += kernels


def _widen(work: LayerWork, weights: Any, recipe: Recipe) -> None:
    """Frozen 4-bit weights are written out in 16 bit for the forward product and again for the input's gradient."""
    moved = adapters.widening_bytes(weights, recipe)
    work.vector_f += moved
    work.vector_b += moved


def _attention(work: LayerWork, model: Model, kind: str, part: Slice, gpu: Gpu, recipe: Recipe) -> None:
    tp, h = part.tp, model.hidden
    kv_width = model.kv_dim / np.minimum(tp, model.kv_heads)
    q_width = model.q_dim / tp
    out_width = model.heads * model.v_head_dim / tp
    if model.mla:
        m = model.mla
        down = m.q_lora_rank + m.kv_lora_rank + m.rope_dim
        shapes: list[tuple[Any, Any]] = [(down, h), (model.heads * (m.nope_dim + m.v_dim) / tp, m.kv_lora_rank)]
        shapes += [(q_width, m.q_lora_rank)] if m.q_lora_rank else [(q_width, h)]
        kv_width = model.heads * (m.nope_dim + m.rope_dim + m.v_dim) / tp / 2
    else:
        shapes = [(q_width + 2 * kv_width, h)]
    _linears(work, [*shapes, (h, out_width)], part, gpu, recipe, adapted=recipe.lora_rank > 0)
    # Rotary embedding, splitting and laying out heads.
    moved = (2.0 if recipe.fused else EAGER_ROTARY) * (q_width + 2 * kv_width)
    work.vector_f += HALF * moved * part.tokens
    work.vector_b += HALF * moved * part.tokens
    # A ring of context-parallel ranks: each works on its share of the square, two balanced halves of its tokens against
    # one rank's keys at a time, and adds every step's part to its output.
    passes = UNFUSED_PASSES_FUSED_SOFTMAX if recipe.fused or recipe.fused_softmax else UNFUSED_PASSES_EAGER
    pieces = np.where(part.cp > 1, 2.0 * part.cp, 1.0)
    forward, backward = attention_s(
        model, kind, part.tokens, part.seq, tp, gpu, attention_kernel(recipe, gpu), pieces=pieces, passes=passes
    )
    work.attn_f += forward
    work.attn_b += backward
    steps = part.cp - 1.0
    work.vector_f += MERGE_BYTES * out_width * part.tokens * steps
    work.vector_b += MERGE_BYTES * (out_width + 2 * kv_width) * part.tokens * steps
    work.kernels_f += 4.0 * KERNELS_MESSAGE * steps
    work.cp_bytes += HALF * 2 * kv_width * part.tokens * (part.cp > 1)


def _dense_mlp(work: LayerWork, model: Model, width: int, part: Slice, gpu: Gpu, recipe: Recipe) -> None:
    inner = width / part.tp
    everywhere = recipe.lora_rank > 0 and recipe.lora_targets == "all"
    shapes = [(model.up_width * inner, model.hidden), (model.hidden, inner)]
    _linears(work, shapes, part, gpu, recipe, adapted=everywhere)
    _activation(work, model, inner * part.tokens, recipe)


def _activation(work: LayerWork, model: Model, values: Any, recipe: Recipe) -> None:
    reads = model.up_width + 1.0
    if not model.fused_activation:
        reads += UNFUSED_ACTIVATION
    elif not recipe.fused:
        reads += 2.0 if model.gated else 1.0
    work.vector_f += HALF * reads * values
    work.vector_b += HALF * (reads + model.up_width) * values


def _experts(work: LayerWork, model: Model, part: Slice, gpu: Gpu, recipe: Recipe) -> None:
    """Routed experts: each GPU holds experts/ep of them and meets tokens x top-k rows, however they are spread."""
    rows = part.tokens * model.experts_per_token / np.where(part.ep * part.etp > 1, part.tp / part.etp, 1.0)
    local = np.maximum(model.experts / part.ep, 1.0)
    each = np.maximum(rows / local, 1.0)
    inner = model.expert_intermediate / part.etp
    width = model.expert_width
    for n, k in ((model.up_width * inner, width), (width, inner)):
        forward, backward = _grouped(
            each, local, n, k, gpu, recipe.precision, wgrad=not recipe.lora_rank, sustained=recipe.sustained
        )
        work.expert_f += forward
        work.expert_b += backward
        work.quant_f += QUANTISE_BYTES[recipe.scales] * rows * k
        work.quant_b += QUANTISE_BYTES[recipe.scales] * rows * n
        _widen(work, n * k * local, recipe)
    _activation(work, model, inner * rows, recipe)
    # Sorting rows by expert and back: out and in, once before the exchange and once after it.
    sorts = 4.0 + 4.0 * (part.ep > 1)
    work.vector_f += HALF * sorts * width * rows
    work.vector_b += HALF * sorts * width * rows
    work.ep_bytes += HALF * width * rows * (part.ep > 1)
    work.routed += EXPERT_LAYER_S + EXPERT_ROW_S * rows
    if model.shared_intermediate:
        _dense_mlp(work, model, model.shared_intermediate, part, gpu, recipe)
    if model.expert_hidden:
        _linears(work, [(width, model.hidden), (model.hidden, width)], part, gpu, recipe)
    router, router_b = _gemm(part.tokens / part.tp, model.experts, model.hidden, gpu, "fp32")
    work.gemm_f += router / 4  # tf32 or bf16 in practice
    work.gemm_b += router_b / 4


def _linear(work: LayerWork, model: Model, part: Slice, gpu: Gpu, recipe: Recipe) -> None:
    """A recurrent mixer: projections in and out, and a chunked scan."""
    assert model.linear is not None
    width = model.linear.params / model.hidden / part.tp
    _linears(work, [(0.75 * width, model.hidden), (model.hidden, 0.25 * width)], part, gpu, recipe)
    scan = 4.0 * model.linear.state_values * part.tokens / part.tp / (gpu.peak("bf16") * CHUNKED_SCAN_SHARE)
    work.scan_f += scan
    work.scan_b += 2.0 * scan
    work.vector_f += HALF * 4.0 * width * part.tokens
    work.vector_b += HALF * 6.0 * width * part.tokens
    work.kernels_f += 8.0
