"""The attention core by kernel: products of scores and values, what a fused kernel skips, what an unfused one moves.

Rates are shares of the dense 16-bit peak on long causal sequences with 128-wide heads; half of the square is counted.
A card runs any kernel up to the newest it has, so a newer kernel is never slower than an older one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stallwise.physics.costs.gemm import Array, power_ratio
from stallwise.physics.specs.hardware import Gpu
from stallwise.physics.specs.model import WINDOW, Model
from stallwise.physics.specs.recipe import ATTENTION

# (forward, backward). Ampere: FlashAttention-2's paper (Dao 2023, figures 4-6), the first generation 1.8 times slower.
# Hopper: an H200 (operators_h200_attention.csv), the newest kernel at the clock it holds under load. Blackwell: cuDNN's
# published rates; FlashAttention-2 keeps to Ampere's instructions there and falls further behind. CDNA: AMD's kernels.
SHARES: dict[str, dict[str, tuple[float, float]]] = {
    "ampere": {"fa1": (0.36, 0.32), "fa2": (0.65, 0.58)},
    "ada": {"fa1": (0.36, 0.32), "fa2": (0.63, 0.56)},
    "blackwell-rtx": {"fa1": (0.36, 0.32), "fa2": (0.63, 0.56)},  # Ada's matrix instructions, none of the B200's
    "hopper": {"fa1": (0.20, 0.18), "fa2": (0.37, 0.335), "fa3": (0.60, 0.50)},
    "blackwell": {"fa1": (0.12, 0.105), "fa2": (0.20, 0.18), "fa3": (0.72, 0.56)},
    "cdna2": {"fa1": (0.20, 0.14), "fa2": (0.32, 0.22)},
    "cdna3": {"fa1": (0.20, 0.14), "fa2": (0.40, 0.30)},
    "cdna4": {"fa1": (0.20, 0.14), "fa2": (0.44, 0.33)},
}
USUAL_SHARES = {"fa1": (0.25, 0.20), "fa2": (0.47, 0.42)}
BACKWARD_RATIO = 2.5  # five products against two
NARROW_HEAD = {"fa1": 0.88, "fa2": 0.88, "fa3": 0.74}  # 64-wide heads fill the matrix unit less (H200)
# A kernel of s tokens works as if it had more: fill, and diagonal blocks half empty. Forward and backward on the H200.
SHORT_FORWARD, SHORT_BACKWARD = 330.0, 900.0
RING_LOSS = 0.04  # per doubling of a ring's pieces: every step waits for its slowest rank
BLOCK_TOKENS, FILLING_BLOCKS = 128.0, 1.5  # few blocks of 128 queries leave multiprocessors idle: 1.5 of them lost each
UNFUSED_GEMM_SHARE = 0.45  # batched products of 64- to 128-wide heads, from and to memory


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


def sixteen_bit_peak(gpu: Gpu) -> float:
    """FLOP/s of the matrix units in whichever 16-bit type the card has, at its power limit."""
    return max(gpu.peak("bf16"), gpu.peak("fp16")) * power_ratio(gpu)


def attention_s(
    model: Model, kind: str, tokens: Any, seq: Any, split: Any, gpu: Gpu, kernel: str, *, pieces: Any = 1.0, passes: float
) -> tuple[Array, Array]:  # fmt: skip
    """Forward and backward seconds of the core over 1/split of the heads, each sequence cut into so many pieces.

    `passes` is how often an unfused core goes over its scores.
    """
    forward, backward = unfused_s(model, tokens, seq, split, gpu, passes=passes)
    flops = core_flops(model, kind, tokens, seq) / split
    blocks = np.asarray(tokens, dtype=np.float64) * model.heads / split / BLOCK_TOKENS
    idle = 1.0 + FILLING_BLOCKS * gpu.sm_count / np.maximum(blocks, 1.0)
    idle = idle * (1.0 + RING_LOSS * np.log2(np.maximum(pieces, 1.0)))
    short = np.asarray(pieces) / np.asarray(seq, dtype=np.float64)  # a ring's pieces are shorter
    peak = sixteen_bit_peak(gpu)
    known = SHARES.get(gpu.architecture, USUAL_SHARES)
    for name in ATTENTION[1 : ATTENTION.index(kernel) + 1]:
        if name in known:
            there, back = (share * (1.0 if model.qk_head_dim > 64 else NARROW_HEAD[name]) for share in known[name])
            forward = np.minimum(forward, flops * idle * (1.0 + SHORT_FORWARD * short) / (peak * there))
            longer = BACKWARD_RATIO * idle * (1.0 + SHORT_BACKWARD * short)
            backward = np.minimum(backward, flops * longer / (peak * back))
    return np.asarray(forward), np.asarray(backward)


def unfused_s(model: Model, tokens: Any, seq: Any, split: Any, gpu: Gpu, *, passes: float) -> tuple[Array, Array]:
    """The same from plain products, mask and softmax: the full square is computed and moved `passes` times."""
    seq = np.asarray(seq, dtype=np.float64)
    scores = np.asarray(tokens, dtype=np.float64) * seq * model.heads / split
    flops = 2.0 * scores * (model.qk_head_dim + model.v_head_dim)
    gemm_s = flops / (sixteen_bit_peak(gpu) * UNFUSED_GEMM_SHARE)
    moved = scores * 2.0 * passes / gpu.achieved_byte_per_s
    return np.asarray(gemm_s + moved), np.asarray(2 * gemm_s + 1.5 * moved)
