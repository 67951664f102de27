"""Clocks held back by power, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import stated
from stallwise.findings.clue import unchanged, yes

CLUES = (
    unchanged(),
    yes(
        stated.THROTTLED,
        "fair",
        "a GPU runs at reduced clocks with a throttle reason",
        "no GPU shows a throttle reason",
    ),
    yes(
        stated.GPU_BUSY_UNCHANGED,
        "against",
        "the GPU's own work takes no longer than before",
        "the GPU's own work takes longer",
    ),
)
