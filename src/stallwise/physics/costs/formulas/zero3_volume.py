"""ZeRO-3 moves one and a half times the bytes of plain data parallelism.

Replication all-reduces the gradients, which is a reduce-scatter and an all-gather. Sharded weights are gathered for the
forward and again for the backward, and the gradients are reduce-scattered: three instead of two.
"""

from __future__ import annotations

from stallwise.physics.costs.volumes import sharding_bytes
from stallwise.units import Unit

EQUATION = "DDP: 2 (d-1)/d G    ZeRO-3: (d-1)/d (G + 2 W)    ratio 1.5 when W = G"
SOURCE = "Rajbhandari et al. 2020 (arXiv 1910.02054), section 7."
FOLK = """
1.5x holds per microbatch: with accumulation replication reduces once a step, ZeRO-3 gathers every microbatch. Keeping
the layers gathered between forward and backward makes it 1.0x; bf16 weights with fp32 gradients 1.0x as well (2 x 2
bytes against 4).
"""
UNITS = {
    "weight_bytes": Unit.BYTE, "gradient_bytes": Unit.BYTE, "replicated_bytes": Unit.BYTE, "sharded_bytes": Unit.BYTE,
    "ratio": Unit.RATIO,
}  # fmt: skip


def evaluate(
    params: float = 70e9,
    ranks: int = 64,
    weight_bytes: float = 2.0,
    gradient_bytes: float = 2.0,
    accumulation_steps: int = 1,
) -> dict[str, float]:
    """Bytes sent per rank and step under both."""
    plain = sharding_bytes(0, params, ranks, gradient_bytes=gradient_bytes)
    sharded = sharding_bytes(
        3, params, ranks, weight_bytes=weight_bytes, gradient_bytes=gradient_bytes,
        accumulation_steps=accumulation_steps,
    )  # fmt: skip
    return {"replicated_bytes": plain, "sharded_bytes": sharded, "ratio": sharded / plain}
