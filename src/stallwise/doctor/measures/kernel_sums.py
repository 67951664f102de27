"""What the names of kernels tell of a summary of times: how much of it runs in kernels made for rows that do not align."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.doctor.measures._vocabulary import narrow_loads
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact

ORDER = 10


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Of summaries only: a trace is measured by step."""
    shares = [(f, f.scope.kernel or "") for f in evidence.all(k.TIME_SHARE)]
    narrow = [(f, name) for f, name in shares if narrow_loads(name)]
    if narrow and not evidence.timelines:
        largest, name = max(narrow, key=lambda x: x[0].number)
        share = min(sum(f.number for f, _ in narrow), 1.0)
        yield Fact(k.NARROW_SHARE, share, largest.source, samples=len(narrow), note=name)
