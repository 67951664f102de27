"""Whose speed-up is stated: beside a hope for a kernel or a list of its configurations it is the kernel's, not that of more GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import run, stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact

ORDER = -10


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """The same number under the kernel's name."""
    fact = evidence.get(run.BENCH_SPEEDUP)
    of_a_kernel = evidence.all(stated.EXPECTED_SPEEDUP) or evidence.all(stated.AUTOTUNE_CONFIGS)
    if (
        fact is None
        or not fact.stated
        or not of_a_kernel
        or evidence.all(stated.GPUS)
        or evidence.all(stated.CUSTOM_SPEEDUP)
    ):
        return
    yield Fact(stated.CUSTOM_SPEEDUP, fact.value, fact.source)
