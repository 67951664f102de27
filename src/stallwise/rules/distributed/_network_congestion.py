"""Links that carry too much, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import stated
from stallwise.findings.clue import yes

CLUES = (
    yes(stated.LINK_DOWN, 10.0, 0.6, "a rail or link is down: the others carry its traffic", "all links are up"),
    yes(stated.FABRIC_HEALTHY, 0.2, 1.5, "the fabric was checked and is fine", "the fabric is not fine"),
    yes(stated.IN_GRADIENT_SYNC, 3.0, 0.3, "the time is lost in the exchange", "the time is not lost in the exchange"),
    yes(
        stated.GPU_BUSY_UNCHANGED,
        0.6,
        1.1,
        "the host keeps the GPU waiting",
        "the GPUs wait in collectives or work longer",
    ),
)
