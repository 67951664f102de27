"""Two runs side by side: which settings differ between the one that was well and the one in question."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import change
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope
from stallwise.readers.text.entries import entries

BEFORE = "before"
ORDER = 5


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Quantities without a direction (settings) that have two values."""
    for name, facts in list(evidence.facts.items()):
        entry = entries().get(name)
        if entry is None or entry.quantity.better:
            continue
        then = next((f for f in facts if f.scope.run == BEFORE), None)
        now = evidence.get(entry.quantity, run=None)
        if then is not None and now is not None and then.value != now.value:
            label = name.rpartition(".")[2].replace("_", " ")
            yield Fact(change.SETTING, f"{label} {then} -> {now}", now.source, Scope(layer=name))
