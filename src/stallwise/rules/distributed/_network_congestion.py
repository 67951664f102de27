"""Links that carry too much, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import stated
from stallwise.findings.clue import AGAINST, FAIR, HINT, yes

CLUES = (
    yes(stated.LINK_DOWN, FAIR, "a rail or link is down: the others carry its traffic", "all links are up"),
    yes(stated.FABRIC_HEALTHY, AGAINST, "the fabric was checked and is fine", "the fabric is not fine"),
    yes(stated.IN_GRADIENT_SYNC, HINT, "the time is lost in the exchange", "the time is not lost in the exchange"),
    yes(
        stated.GPU_BUSY_UNCHANGED,
        AGAINST,
        "the host keeps the GPU waiting",
        "the GPUs wait in collectives or work longer",
    ),
)
