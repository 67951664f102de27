"""Every token of context keeps a key and a value per layer and key-value head.

Grouped-query attention divides it by the group size. Tensor parallelism divides it as long as there are heads to divide.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = "bytes = 2 L k d s b element / min(tp, k)"
SOURCE = "Arithmetic; shapes of Llama 3 8B: 32 layers, 8 key-value heads of 128."
FOLK = """
With the query heads or the hidden size in place of the key-value heads the result is 4 to 16 times too large for GQA.
More TP ranks than key-value heads replicate instead of dividing. MLA caches one latent per token and does not divide.
"""
UNITS = {"element": Unit.BYTE, "token_bytes": Unit.BYTE, "request_bytes": Unit.BYTE, "total_bytes": Unit.BYTE}


def evaluate(
    layers: int = 32, kv_heads: int = 8, head_dim: int = 128, context: int = 8192, requests: int = 8,
    element: float = 2.0, tp: int = 1,
) -> dict[str, float]:  # fmt: skip
    """Per token, per request and in all, on one GPU."""
    token = 2 * layers * kv_heads * head_dim * element / min(tp, kv_heads)
    return {"token_bytes": token, "request_bytes": token * context, "total_bytes": token * context * requests}
