"""Adam in mixed precision keeps sixteen bytes per parameter, eighteen with fp32 gradients.

The weights used by the products, their gradients, a full-precision copy to update, and two running moments.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = "state = N (weight + gradient + master + momentum + variance)"
SOURCE = "Rajbhandari et al. 2020 (ZeRO, arXiv 1910.02054), section 3.1; Megatron-LM keeps fp32 gradients (18 bytes)."
FOLK = """
"16 bytes" is one recipe of several: fp32 gradients make it 18, bf16 moments 12, an fp8 copy of the weights and its
transpose add 2. Say which. And "Adam is 8 bytes per parameter" counts the two moments only, not the fp32 copy.
"""
PARTS = ("weight", "gradient", "master", "momentum", "variance")
UNITS = dict.fromkeys((*PARTS, "bytes_per_param", "state_bytes", "optimizer_bytes"), Unit.BYTE)


def evaluate(
    params: float = 70e9,
    weight: float = 2.0,
    gradient: float = 2.0,
    master: float = 4.0,
    momentum: float = 4.0,
    variance: float = 4.0,
) -> dict[str, float]:
    """Bytes of all model states, unsharded."""
    each = weight + gradient + master + momentum + variance
    return {
        "bytes_per_param": each,
        "state_bytes": params * each,
        "optimizer_bytes": params * (master + momentum + variance),
    }
