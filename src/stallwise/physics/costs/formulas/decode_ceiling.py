"""A decode step reads all weights and all caches once: bandwidth sets how many tokens a second one gets.

Requests share the weights but not their caches.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = "step = (weights + requests x KV) / (GPUs x bandwidth x achieved)    tokens/s = requests / step"
SOURCE = "Pope et al. 2022 (arXiv 2211.05102); achieved bandwidth 0.8 to 0.9 of the data sheet."
FOLK = """
"99% GPU utilisation" says only that a kernel was resident. At large batches the caches, not the weights, are what is
read: throughput levels off while latency grows.
"""
UNITS = {
    "weights_bytes": Unit.BYTE, "kv_bytes": Unit.BYTE, "byte_per_s": Unit.BYTE_PER_S, "achieved_share": Unit.SHARE,
    "step_s": Unit.SECOND, "user_token_per_s": Unit.TOKEN_PER_S, "total_token_per_s": Unit.TOKEN_PER_S,
}  # fmt: skip


def evaluate(
    weights_bytes: float = 70e9, kv_bytes: float = 0.67e9, requests: int = 16, gpus: int = 8,
    byte_per_s: float = 3.35e12, achieved_share: float = 0.85,
) -> dict[str, float]:  # fmt: skip
    """The shortest possible step and both token rates."""
    step = (weights_bytes + requests * kv_bytes) / (gpus * byte_per_s * achieved_share)
    return {"step_s": step, "user_token_per_s": 1 / step, "total_token_per_s": requests / step}
