"""How many loader workers a recorded rank had: each that made a batch left its own stacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact
from stallwise.evidence.user_lines import KIND, LOADER_WORKER

ORDER = -6  # before what weighs workers


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Of the rank with the most, where nothing states their number."""
    tables = [t for t in evidence.table(KIND) if LOADER_WORKER in t.meta["total"]]
    if not tables or evidence.get(run.LOADER_WORKERS) is not None:
        return
    _, most = Counter(t.scope.rank for t in tables).most_common(1)[0]
    yield Fact(run.LOADER_WORKERS, float(most), tables[0].source)
