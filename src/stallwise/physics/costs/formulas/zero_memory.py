"""ZeRO shards the optimizer, then the gradients, then the weights over the data-parallel ranks.

Stage 1 keeps weights and gradients whole, stage 2 the weights, stage 3 nothing but the layer at work.
"""

from __future__ import annotations

from stallwise.errors import BadRequest
from stallwise.units import Unit

EQUATION = """
stage 0: N (w + g + o)        stage 1: N (w + g + o/d)
stage 2: N (w + (g + o)/d)    stage 3: N (w + g + o)/d + gathered layers
"""
SOURCE = "Rajbhandari et al. 2020 (ZeRO, arXiv 1910.02054), figure 1."
FOLK = """
"4x, 8x, d x" are limits for many ranks with 2 + 2 + 12 bytes: at d = 8 stage 1 saves 2.9x and stage 2 4.3x. Stage 2
with gradient accumulation must either reduce every microbatch or keep whole gradients. Stage 3 also holds the gathered
layer, twice with prefetch, and can exceed stage 2 at small d (DeepSpeed #5305).
"""
UNITS = {
    "weight": Unit.BYTE, "gradient": Unit.BYTE, "optimizer": Unit.BYTE, "gathered_bytes": Unit.BYTE,
    "bytes_per_rank": Unit.BYTE, "saving_ratio": Unit.RATIO, "limit_ratio": Unit.RATIO,
}  # fmt: skip


def evaluate(
    params: float = 7.5e9,
    ranks: int = 64,
    stage: int = 3,
    weight: float = 2.0,
    gradient: float = 2.0,
    optimizer: float = 12.0,
    gathered_bytes: float = 0.0,
) -> dict[str, float]:
    """Bytes on each rank, the saving against replication, and its limit for many ranks (0: none)."""
    if stage not in (0, 1, 2, 3):
        raise BadRequest(f"there is no ZeRO stage {stage}", hint="0, 1, 2 or 3")
    whole = weight + gradient + optimizer
    kept = {0: whole, 1: weight + gradient, 2: weight, 3: 0.0}[stage]
    rank_bytes = params * (kept + (whole - kept) / ranks) + (gathered_bytes if stage == 3 else 0.0)
    limit = whole / kept if kept else float(ranks)
    return {"bytes_per_rank": rank_bytes, "saving_ratio": params * whole / rank_bytes, "limit_ratio": limit}
