"""Attention without fusion stores a score for every pair of tokens, head and sequence.

Fused attention never writes them: its memory grows with the sequence, not with its square.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = "bytes = b (a/t) s^2 element per layer, for the scores and again for the softmax"
SOURCE = "Dao et al. 2022 (arXiv 2205.14135)."
FOLK = """
Halving TP doubles the heads per rank and with them the scores; but with fused attention there are none, and the doubled
tensors are the rest of the layer: the gathered weights, the MLP's widths and the logits.
"""
UNITS = {"element": Unit.BYTE, "scores_bytes": Unit.BYTE}


def evaluate(seq: int = 8192, batch: int = 1, heads: int = 128, tp: int = 4, element: float = 2.0) -> dict[str, float]:
    """Bytes of one layer's scores on one rank."""
    return {"scores_bytes": batch * heads / tp * float(seq) ** 2 * element}
