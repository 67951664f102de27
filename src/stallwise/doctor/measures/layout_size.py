"""How many GPUs a job has, where its nodes or its layout say it and nobody counts them."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import fabric, stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Source

ORDER = -9
ARITHMETIC = Source("arithmetic on stated facts")


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Nodes times the GPUs of each, else the product of all parallel dimensions."""
    if evidence.all(stated.GPUS):
        return
    nodes, each = evidence.value(fabric.NODES), evidence.value(fabric.GPUS_PER_NODE)
    split = [evidence.value(q) for q in (fabric.TP_SIZE, stated.PP, stated.DP)]
    count = nodes * each if nodes * each > 0 else split[0] * split[1] * split[2]
    if count > 1:
        yield Fact(stated.GPUS, count, ARITHMETIC)
