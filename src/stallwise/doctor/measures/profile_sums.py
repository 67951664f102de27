"""What a profile of sums says of host against device: how long each worked, how much the host issued, and what else it did.

Sums of operators on host threads are about the wall time, since forward and backward take turns; sums of CUDA calls alone are not.
"""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import recording as r
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact
from stallwise.evidence.profile import KIND

OPERATORS = "operators"
ISSUING = ("launching kernels", "forward", "backward", "the optimizer")  # kinds of work that issue kernels


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Of several profiles the longest."""
    tables = [
        t for t in evidence.table(KIND) if t.meta["of"] == OPERATORS and t.meta["host_s"] > 0 and t.meta["device_s"] > 0
    ]
    longest = max(tables, key=lambda t: t.meta["host_s"], default=None)
    if longest is None:
        return
    other_s = sum(s for kind, s in longest.meta["doing"].items() if kind not in ISSUING)
    for quantity, value in (
        (r.HOST_SUM, longest.meta["host_s"]),
        (r.DEVICE_SUM, longest.meta["device_s"]),
        (r.ISSUED, longest.meta["launches"]),
        (r.NOT_ISSUING, min(other_s, longest.meta["host_s"])),
    ):
        yield Fact(quantity, float(value), longest.source, longest.scope)
