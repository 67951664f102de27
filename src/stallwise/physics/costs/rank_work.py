"""What one GPU of a deployment reads, computes and sends, per token and per iteration: counts only, no efficiencies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from stallwise.physics.costs.grouped import FILL_K, TILES
from stallwise.physics.specs.deployment import Deployment
from stallwise.physics.specs.dtype import bytes_per
from stallwise.physics.specs.model import DENSE, FULL, LINEAR, MOE, WINDOW

BF16_BYTES = 2.0
FP8_BYTES = 1.0
DISPATCH_BYTES = FP8_BYTES + BF16_BYTES  # all-to-all: 8 bit out, 16 bit back


@dataclass(frozen=True, slots=True)
class RankWork:
    """Per GPU. Seconds here are at data-sheet peaks. In a fit the fields may be numpy arrays."""

    tp: Any
    dp: Any
    pp: Any
    ep: Any
    layers: Any
    moe_layers: Any
    mla_layers: Any
    indexed_layers: Any  # that pick which tokens to attend to
    weight_bytes: Any  # attention, dense MLPs, shared experts
    head_bytes: Any
    expert_bytes: Any  # one expert of every MoE layer
    experts: Any
    per_token_experts: Any
    peak_s_per_token: Any  # attention and dense matmuls
    head_s_per_token: Any
    expert_s_per_row: Any  # one token through one expert of every MoE layer
    expert_tile_share: Any  # of an expert's tiles that is work: narrow cuts pad columns and drain pipelines
    stream_bytes_per_token: Any  # the residual stream of all layers once, which TP does not cut
    expert_stream_bytes_per_row: Any  # the same for a row sorted to an expert and back
    kv_bytes_per_token: Any  # of the full-attention layers
    window_bytes_per_token: Any
    window: Any
    state_bytes: Any  # recurrent state of one sequence
    decode_s_per_context: Any  # attention arithmetic of one query against one cached token
    prefill_s_per_pair: Any  # the same in prefill (for MLA not absorbed)
    bandwidth: Any
    collectives: Any  # all-reduces of one iteration, in those of a group of eight: latency grows by the doubling
    link_s_per_token: Any  # their bytes at link peak
    exchanges: Any  # all-to-alls of one iteration
    exchange_s_per_token: Any
    blackwell: Any  # 1 or 0
    fp8: Any
    fp4: Any


def rank_work(d: Deployment) -> RankWork:
    """Counts for one deployment."""
    m, gpu = d.model, d.gpu
    attention, dense = _attention_params(d), _dense_params(d)
    full, window = m.attention_layers(FULL), m.attention_layers(WINDOW)
    per_layer_kv = (m.kv_bytes_per_token(d.kv_dtype, d.tp) / (full + window)) if full + window else 0.0
    expert = m.mlp_matrix_params(m.expert_intermediate) * m.moe_layers if m.experts else 0
    decode, prefill = _attention_flop(d)
    picked = m.mla.index_topk if m.mla else 0
    link = gpu.nvlink_byte_per_s or gpu.pcie_byte_per_s
    spread = d.tp * d.dp
    return RankWork(
        tp=d.tp, dp=d.dp, pp=d.pp, ep=d.ep, layers=m.layers, moe_layers=m.moe_layers,
        mla_layers=m.layers if m.mla else 0, indexed_layers=m.layers if picked else 0,
        weight_bytes=attention * bytes_per(d.attention_dtype) + dense * bytes_per(d.weights)
        + _shared(d) * _shared_bytes(d),
        head_bytes=m.vocab * m.hidden * BF16_BYTES / spread,
        expert_bytes=expert * bytes_per(d.weights) / d.expert_tp,
        experts=max(m.experts, 1), per_token_experts=m.experts_per_token,
        peak_s_per_token=2 * (attention / gpu.peak(_multiplied(d.attention_dtype))
        + (dense + _shared(d)) / gpu.peak(_multiplied(d.weights))),
        head_s_per_token=2 * m.vocab * m.hidden / spread / gpu.peak("bf16"),
        expert_s_per_row=2 * expert / spread / gpu.peak(_multiplied(d.weights)),
        expert_tile_share=_tile_share(d) if m.experts else 1.0,
        stream_bytes_per_token=m.layers * m.hidden * BF16_BYTES,
        expert_stream_bytes_per_row=m.moe_layers * m.hidden * BF16_BYTES / d.ep if m.experts else 0.0,
        # An indexer reads its own short key of every token and the latents of those it picked.
        kv_bytes_per_token=full * (m.mla.index_dim * FP8_BYTES if m.mla and picked else per_layer_kv),
        window_bytes_per_token=(full if picked else window) * per_layer_kv,
        window=picked or m.sliding_window or 1,
        state_bytes=m.attention_layers(LINEAR) * (m.linear.state_values if m.linear else 0) / d.tp * BF16_BYTES,
        decode_s_per_context=decode / gpu.peak("bf16"), prefill_s_per_pair=prefill / gpu.peak("bf16"),
        bandwidth=gpu.bandwidth_byte_per_s,
        collectives=2 * m.layers * math.log2(d.tp) / math.log2(8),
        link_s_per_token=2 * m.layers * m.hidden * BF16_BYTES * 2 * (d.tp - 1) / d.tp / link,
        exchanges=2 * m.moe_layers if d.dp > 1 else 0,
        exchange_s_per_token=_exchange_bytes(d) / link,
        blackwell=1 if gpu.architecture.lower().startswith("blackwell") else 0,
        fp8=1 if d.weights in ("fp8", "mxfp8") else 0,
        fp4=1 if d.weights in ("fp4", "nvfp4", "mxfp4") else 0,
    )  # fmt: skip


def _multiplied(stored: str) -> str:
    """The type that the matrix units see: weights only stored in 4 bit are widened on the way."""
    return "bf16" if stored == "int4" else stored


def _tile_share(d: Deployment) -> float:
    """Work over what the tiles of an expert's two grouped products compute, with whole tiles of columns and their drain.

    The tile is the one that loses least, as kernels are picked; rows are padded elsewhere, since they depend on load.
    """
    hidden, width = float(d.model.hidden), max(d.model.expert_intermediate / d.expert_tp, 1.0)
    matrices = d.model.up_width

    def cost(n: float, k: float, tile_n: int) -> float:
        return math.ceil(n / tile_n) * tile_n * (k + FILL_K)

    work = (matrices + 1) * hidden * width
    costs = [cost(matrices * width, hidden, tile) + cost(hidden, width, tile) for tile in {n for _, n in TILES}]
    return work / min(costs)


def weight_bytes_per_rank(d: Deployment) -> float:
    """What the weights occupy on the fullest GPU."""
    m = d.model
    expert = m.mlp_matrix_params(m.expert_intermediate) * m.moe_layers * m.experts if m.experts else 0
    attention = _attention_params(d) * bytes_per(d.attention_dtype)
    own = attention + _dense_params(d) * bytes_per(d.weights) + _shared(d) * _shared_bytes(d)
    tables = m.vocab * m.hidden * BF16_BYTES * (1 if m.tied else 2) / d.tp
    return (own + expert * bytes_per(d.weights) / (d.tp * d.dp)) / d.pp + tables


def _attention_params(d: Deployment) -> float:
    """Attention weights on one GPU: key and value heads are copied once TP exceeds them, MLA's latents always."""
    m, total = d.model, 0.0
    for kind in (FULL, WINDOW, LINEAR):
        layers = m.attention_layers(kind)
        if not layers:
            continue
        params = float(m.attention_params(kind))
        copied = 0.0
        if kind != LINEAR and m.mla:
            copied += m.hidden * (m.mla.q_lora_rank + m.mla.kv_lora_rank + m.mla.rope_dim)
        elif kind != LINEAR:
            params += 2 * m.hidden * m.kv_dim * (d.tp / min(d.tp, m.kv_heads) - 1)
        total += layers * (copied + (params - copied) / d.tp)
    return total


def _dense_params(d: Deployment) -> float:
    dense_layers = sum(k.layers for k in d.model.kinds if k.mlp == DENSE)
    return dense_layers * d.model.mlp_params(DENSE) / d.tp if dense_layers else 0.0


def _shared(d: Deployment) -> float:
    m = d.model
    width = m.shared_intermediate
    return m.mlp_matrix_params(width) * sum(k.layers for k in m.kinds if k.mlp == MOE) / d.tp if width else 0.0


def _shared_bytes(d: Deployment) -> float:
    return BF16_BYTES if d.weights == "int4" else bytes_per(d.weights)  # int4 checkpoints keep shared experts whole


def _attention_flop(d: Deployment) -> tuple[float, float]:
    """Of one query token against one cached token, all layers, one GPU: in decode and in prefill."""
    m = d.model
    layers = m.attention_layers(FULL) + m.attention_layers(WINDOW)
    plain = 2.0 * m.heads * (m.qk_head_dim + m.v_head_dim) / d.tp * layers
    if not m.mla:
        return plain, plain
    absorbed = 2.0 * m.heads * (2 * m.mla.kv_lora_rank + m.mla.rope_dim) / d.tp * layers
    return absorbed, plain


def _exchange_bytes(d: Deployment) -> float:
    if d.dp == 1 or not d.model.experts:
        return 0.0
    n = d.tp * d.dp
    return d.model.moe_layers * min(d.model.experts_per_token, n) * d.model.hidden * DISPATCH_BYTES * (n - 1) / n
