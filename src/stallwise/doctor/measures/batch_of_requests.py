"""Where a time per token is told, the batch is how many requests run at once: "14 ms a token at batch 1"."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import serving, stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact

ORDER = -10  # before whoever works with the number that runs


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Nothing where the engine itself said how many ran."""
    batch = evidence.get(stated.MICROBATCH)
    if batch is None or not evidence.all(serving.TPOT) or evidence.all(serving.RUNNING):
        return
    yield Fact(serving.RUNNING, batch.value, batch.source, batch.scope)
