"""A utilisation that somebody states is the run's own, whichever word it was stated in."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import hardware, run
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact

ORDER = -10  # before clues look at it


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Only what is stated: samples of a card may show an idle window of a busy run."""
    if not evidence.all(run.GPU_BUSY):
        for fact in evidence.all(hardware.GPU_UTILISATION):
            if fact.stated:
                yield Fact(run.GPU_BUSY, fact.value, fact.source, fact.scope)
