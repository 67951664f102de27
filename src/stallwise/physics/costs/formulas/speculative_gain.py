"""Speculative decoding yields several tokens per pass of the large model when the small one guesses well.

Each of g guesses is accepted with chance a as long as all before it were.
"""

from __future__ import annotations

from stallwise.units import Unit

EQUATION = "tokens per pass = (1 - a^(g+1)) / (1 - a)    speed-up = tokens / (1 + g c)"
SOURCE = "Leviathan et al. 2022 (arXiv 2211.17192), equations 1 and 2; c = draft cost / target cost."
FOLK = """
An upper bound: it assumes that checking g+1 tokens costs one pass, which holds only while decode is memory-bound. At
large batches the check itself costs, and in a mixture of experts it touches more experts.
"""
UNITS = {
    "accept_share": Unit.SHARE, "draft_share": Unit.SHARE, "tokens_per_pass": Unit.COUNT, "speedup_ratio": Unit.RATIO,
}  # fmt: skip


def evaluate(accept_share: float = 0.8, guesses: int = 4, draft_share: float = 0.05) -> dict[str, float]:
    """Tokens per pass, and the speed-up after paying for the guesses."""
    if accept_share >= 1:
        tokens = float(guesses + 1)
    else:
        tokens = (1 - accept_share ** (guesses + 1)) / (1 - accept_share)
    return {"tokens_per_pass": tokens, "speedup_ratio": tokens / (1 + guesses * draft_share)}
