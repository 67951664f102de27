"""Training costs six operations per parameter and token, plus attention, plus the head.

Two for the forward, four for the backward. Attention adds a term that grows with the sequence.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = "FLOPs per token = 6 N + 12 L h_q s (full square) or 6 L h_q s (causal)"
SOURCE = "Kaplan et al. 2020 (arXiv 2001.08361), appendix; Chowdhery et al. 2022 (PaLM), appendix B, for MFU."
FOLK = """
6 N D alone is low at long sequences: for Llama 3 8B at 8k attention adds 29% of 6 N in full counting, half of
that causal. Tables that count the full square show an MFU up to twice as high at 64k tokens. The lookup of the
embedding multiplies nothing; the head does.
"""
UNITS = {
    "token_flop": Unit.FLOP, "attention_share": Unit.SHARE, "mfu_share": Unit.SHARE, "peak_flop_per_s": Unit.FLOP_PER_S,
    "token_per_s": Unit.TOKEN_PER_S,
}  # fmt: skip


def evaluate(
    params: float = 7.5e9, layers: int = 32, query_width: int = 4096, seq: int = 8192, token_per_s: float = 9000.0,
    peak_flop_per_s: float = 989e12,
) -> dict[str, float]:  # fmt: skip
    """FLOPs of a token (causal), the part of attention against 6 N in full counting, and MFU at a token rate."""
    attention = 12.0 * layers * query_width * seq
    token = 6 * params + attention / 2
    return {
        "token_flop": token,
        "attention_share": attention / (6 * params),
        "mfu_share": token_per_s * token / peak_flop_per_s,
    }
