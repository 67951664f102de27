"""A cap on running requests, while only suspected."""

from __future__ import annotations

from stallwise.evidence.catalog import stated
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import Clue


def _at_the_cap(evidence: Evidence) -> bool | None:
    """Every slot taken, a queue at the door, and the cache far from full."""
    running, cap = evidence.value(stated.RUNNING), evidence.value(stated.MAX_SEQS)
    return (
        running >= 0.95 * cap and evidence.value(stated.KV_USE, 0.5) < 0.6 and evidence.value(stated.WAITING, 1.0) > 0
    )


CLUES = (
    Clue(
        (stated.RUNNING, stated.MAX_SEQS),
        _at_the_cap,
        "decisive, needed",
        "every slot is taken while the cache has room",
        "slots are free or the cache is full",
    ),
)
