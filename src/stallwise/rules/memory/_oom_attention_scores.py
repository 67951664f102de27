"""Attention scores written out, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import stated
from stallwise.findings.clue import above, yes

CLUES = (
    yes(stated.FLASH_ATTENTION, "against", "attention is fused and writes no scores", "attention writes its scores"),
    above(
        stated.SEQUENCE,
        8191,
        "hint when seen",
        "the sequence is long: scores grow with its square",
        "the sequence is short",
    ),
)
