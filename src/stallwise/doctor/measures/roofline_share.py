"""Any rate against the ceiling of the named card."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import change, hardware, run, stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope
from stallwise.physics.specs.hardware import find_gpu

ORDER = 5
PRECISIONS = ("fp8", "fp16", "bf16", "tf32", "fp64", "fp32")


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """FLOP rates over the matrix peak of the stated precision (bf16 where none is)."""
    named = evidence.text(stated.GPU) or evidence.text(hardware.GPU_NAME)
    card = find_gpu(named) if named else None
    if card is None:
        return
    word = evidence.text(run.PRECISION, "bf16").lower()
    peak = card.peak(next((p for p in PRECISIONS if p in word), "bf16"))
    for quantity in (run.FLOP_RATE, stated.LIBRARY_FLOP_RATE):
        fact = evidence.get(quantity, run=None)
        if fact is not None and not isinstance(fact.value, str):
            yield Fact(change.CEILING_SHARE, fact.number / peak, fact.source, Scope(layer=quantity.name))
