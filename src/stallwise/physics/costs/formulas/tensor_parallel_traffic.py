"""Tensor parallelism all-reduces the activations twice per layer forward and twice backward.

That is why it stays inside an NVLink domain: the same bytes over the network take as many times longer as the network
is slower, and nothing hides them.
"""

from __future__ import annotations

from stallwise.physics.costs.volumes import tensor_parallel_bytes
from stallwise.units import Unit

EQUATION = "bytes per rank = 4 L x 2 (t-1)/t x s b h element    time = bytes / rate"
SOURCE = "Shoeybi et al. 2019 (Megatron-LM, arXiv 1909.08053), section 3."
FOLK = """
"Inside the node it is free": at small widths the products become too small to fill the GPU before the communication
shows. NVLink's 900 GB/s (H100) count both directions; a ring uses one: 450. 400 Gb/s of network are 50 GB/s, not 400.
"""
UNITS = {
    "element": Unit.BYTE, "link_byte_per_s": Unit.BYTE_PER_S, "network_byte_per_s": Unit.BYTE_PER_S,
    "sent_bytes": Unit.BYTE, "link_s": Unit.SECOND, "network_s": Unit.SECOND, "ratio": Unit.RATIO,
}  # fmt: skip


def evaluate(
    layers: int = 80, tokens: int = 4096, hidden: int = 8192, tp: int = 8, element: float = 2.0,
    link_byte_per_s: float = 370e9, network_byte_per_s: float = 47e9,
) -> dict[str, float]:  # fmt: skip
    """Bytes of one microbatch's step, and its time over either kind of link."""
    sent = tensor_parallel_bytes(layers, tokens, hidden, tp, element_bytes=element)
    link, network = sent / link_byte_per_s, sent / network_byte_per_s
    return {"sent_bytes": sent, "link_s": link, "network_s": network, "ratio": network / link if link else 0.0}
