"""How far a card's clock fell, where somebody tells both clocks."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact

ORDER = -10  # rules ask for the fall beside the ones that samples show


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """The share of the clock that was lost since before."""
    before = evidence.get(hw.GPU_CLOCK, run="before")
    now = next((f for f in evidence.all(hw.GPU_CLOCK) if f.stated and f.scope.run != "before"), None)
    if before is None or now is None or not before.number > now.number > 0:
        return
    yield Fact(hw.GPU_SAMPLES, 2.0, now.source, now.scope)  # what was seen of the card: its state then, and now
    yield Fact(hw.GPU_CLOCK_FALL, 1 - now.number / before.number, now.source, now.scope)
