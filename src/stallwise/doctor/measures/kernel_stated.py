"""Counters that were pasted or stated without naming a kernel speak of one kernel: this gives it a scope of its own."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope

ORDER = -10
THE_KERNEL = "the kernel"
ENOUGH = 2  # counters: one number alone describes no kernel


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """The same facts, scoped to the one kernel they describe."""
    if any(True for _ in evidence.scopes("kernel")):
        return
    found: dict[str, Fact] = {}
    for name, facts in evidence.facts.items():
        shown = [f for f in facts if not f.stated]  # what is only stated goes to the differential, which says so
        if name.startswith("kernel.") and shown:
            found[name] = shown[-1]
    if len(found) < ENOUGH:
        return
    scope = Scope(kernel=THE_KERNEL)
    for fact in found.values():
        yield Fact(fact.quantity, fact.value, fact.source, scope, fact.samples, note=fact.note)
