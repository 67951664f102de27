"""Any quantity that is worse than it was: a before/now pair and its direction are a complaint, whatever the quantity."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import change
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope
from stallwise.meaning.entries import entries

BEFORE = "before"


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """One ratio above 1 per quantity that got worse."""
    for name, facts in list(evidence.facts.items()):
        entry = entries().get(name)
        then = next((f for f in facts if f.scope.run == BEFORE and not isinstance(f.value, str)), None)
        if entry is None or not entry.better or then is None or then.number <= 0:
            continue
        now = evidence.get(entry.quantity, run=None)
        if now is None or isinstance(now.value, str) or now.number <= 0:
            continue
        ratio = now.number / then.number if entry.better == "lower" else then.number / now.number
        if ratio > 1.0:
            yield Fact(change.WORSE_RATIO, ratio, now.source, Scope(layer=name), samples=min(now.samples, then.samples))
