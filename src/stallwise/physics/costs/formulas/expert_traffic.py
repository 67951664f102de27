"""A mixture of experts sends every token to its experts and back: two all-to-alls per layer, four with the backward.

Each token travels once per expert it visits. What leaves the domain leaves through the sender's own network card.
"""

from __future__ import annotations

from stallwise.physics.costs.volumes import expert_parallel_bytes
from stallwise.units import Unit

EQUATION = "bytes per rank and layer = 2 (n-1)/n x tokens x k x h x element (forward)"
SOURCE = "Lepikhin et al. 2020 (GShard, arXiv 2006.16668); DeepSeek-V3: h = 7168, 8 experts per token, fp8 dispatch."
FOLK = """
Counting active parameters only makes steps 2 to 4 times too short: the exchange, small grouped products and imbalance
are what a mixture of experts waits for.
"""
UNITS = {
    "element": Unit.BYTE, "network_byte_per_s": Unit.BYTE_PER_S, "sent_bytes": Unit.BYTE, "network_s": Unit.SECOND,
}  # fmt: skip


def evaluate(
    tokens: int = 4096, hidden: int = 7168, experts_per_token: int = 8, ranks: int = 64, element: float = 2.0,
    network_byte_per_s: float = 47e9,
) -> dict[str, float]:  # fmt: skip
    """Bytes a rank sends in one layer's forward, and their time at one network card."""
    sent = expert_parallel_bytes(tokens, hidden, experts_per_token, ranks, element_bytes=element)
    return {"sent_bytes": sent, "network_s": sent / network_byte_per_s}
