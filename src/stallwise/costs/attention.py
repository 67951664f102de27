"""The attention core: products of scores and values, what a fused kernel skips, and what an unfused one moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from stallwise.costs.gemm import Array
from stallwise.specs.hardware import Gpu
from stallwise.specs.model import WINDOW, Model

# Share of the dense peak a fused attention kernel reaches on long causal sequences with 128-wide heads: published
# FlashAttention-2 (A100: 0.60 forward, 0.52 backward), FlashAttention-3 and cuDNN (H100: 0.60 and 0.48) tables.
FORWARD_SHARE = {"ampere": 0.62, "hopper": 0.55, "blackwell": 0.55}
BACKWARD_SHARE = {"ampere": 0.52, "hopper": 0.45, "blackwell": 0.45}
USUAL_SHARE = 0.45
# The first generation against the second: 1.8 times slower on A100 (Dao 2023, figures 4-6); on Hopper neither uses
# the new matrix instructions, so it falls further behind the third.
FIRST_GENERATION_RATIO = {"ampere": 1.8, "hopper": 2.4}
BACKWARD_RATIO = 2.5  # five products against two
NARROW_HEAD = 0.80  # 64-wide heads fill the matrix unit less; share x 0.8
SHORT_SEQUENCE = 512.0  # a kernel of s tokens works as if it had s + 512: fill, diagonal blocks half empty
UNFUSED_PRODUCT_SHARE = 0.45  # batched products of 64- to 128-wide heads, from and to memory


def pairs_per_token(model: Model, kind: str, seq: Any) -> Array:
    """How many keys a token looks at on average, causal."""
    seq = np.asarray(seq, dtype=np.float64)
    if kind == WINDOW and model.sliding_window:
        window = np.minimum(float(model.sliding_window), seq)
        return np.asarray(window - window * window / (2 * seq))
    return np.asarray(seq / 2.0)


def core_flops(model: Model, kind: str, tokens: Any, seq: Any) -> Array:
    """Forward FLOPs of scores and values, causal half only."""
    width = model.heads * (model.qk_head_dim + model.v_head_dim)
    return np.asarray(2.0 * np.asarray(tokens, dtype=np.float64) * pairs_per_token(model, kind, seq) * width)


def fused_s(
    model: Model, kind: str, tokens: Any, seq: Any, split: Any, gpu: Gpu, *, first: bool = False
) -> tuple[Array, Array]:
    """Forward and backward seconds of a fused kernel over 1/split of the heads."""
    slower = FIRST_GENERATION_RATIO.get(gpu.architecture, 1.0) if first else 1.0
    flops = core_flops(model, kind, tokens, seq) / split * slower
    # Diagonal blocks are computed whole and short sequences leave the machine part empty.
    stretch = 1.0 + SHORT_SEQUENCE / np.asarray(seq, dtype=np.float64)
    narrow = 1.0 if model.qk_head_dim > 64 else NARROW_HEAD
    peak = gpu.peak("bf16") * narrow
    forward = flops * stretch / (peak * FORWARD_SHARE.get(gpu.architecture, USUAL_SHARE))
    backward = BACKWARD_RATIO * flops * stretch / (peak * BACKWARD_SHARE.get(gpu.architecture, USUAL_SHARE))
    return np.asarray(forward), np.asarray(backward)


def unfused_s(model: Model, tokens: Any, seq: Any, split: Any, gpu: Gpu, *, passes: float) -> tuple[Array, Array]:
    """The same from plain products, mask and softmax: the full square is computed and moved `passes` times."""
    seq = np.asarray(seq, dtype=np.float64)
    scores = np.asarray(tokens, dtype=np.float64) * seq * model.heads / split
    flops = 2.0 * scores * (model.qk_head_dim + model.v_head_dim)
    product = flops / (gpu.peak("bf16") * UNFUSED_PRODUCT_SHARE)
    moved = scores * 2.0 * passes / gpu.achieved_byte_per_s
    return np.asarray(product + moved), np.asarray(2 * product + 1.5 * moved)
