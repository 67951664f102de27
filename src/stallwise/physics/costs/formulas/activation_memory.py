"""What a transformer layer saves for its backward: 34 bytes per token and hidden unit, plus the scores.

The scores grow with the square of the sequence and are what fused attention never stores. Recompute keeps only the
layer's input and pays with one more forward.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = """
all: s b h (34 + 5 a s / h)    fused attention: 34 s b h    full recompute: 2 s b h
with TP and SP: divided by t;  without SP: 10 s b h + (24 + 5 a s / h) s b h / t
"""
SOURCE = "Korthikanti et al. 2022 (arXiv 2205.05198), equations 1 to 4; 16-bit, GELU, dropout, 4h MLP, one layer."
FOLK = """
"Recompute saves 70%": full recompute keeps 2 of 34 + 5as/h, a saving of 94 to 98%; selective recompute on top of fused
attention saves next to nothing (Megatron-LM #1225), because the scores are not there to be saved.
"""
UNITS = {
    "all_bytes": Unit.BYTE, "fused_bytes": Unit.BYTE, "recompute_bytes": Unit.BYTE, "no_sp_bytes": Unit.BYTE,
    "score_share": Unit.SHARE,
}  # fmt: skip


def evaluate(seq: int = 2048, batch: int = 1, hidden: int = 12288, heads: int = 96, tp: int = 8) -> dict[str, float]:
    """Bytes of one layer on one of `tp` GPUs."""
    unit, scores = float(seq * batch * hidden), 5 * heads * seq / hidden
    return {
        "all_bytes": unit * (34 + scores) / tp,
        "fused_bytes": unit * 34 / tp,
        "recompute_bytes": unit * 2 / tp,
        "no_sp_bytes": unit * (10 + (24 + scores) / tp),
        "score_share": scores / (34 + scores),
    }
