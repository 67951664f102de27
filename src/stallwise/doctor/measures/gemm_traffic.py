"""Bytes that a matrix product moved from and to DRAM against those it must move: how often its operands are read again."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.doctor.measures._stated_model import card_of, dtype_of
from stallwise.evidence.catalog import expected, kernel, run, stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import WHOLE, Fact, Source
from stallwise.physics.costs.gemm import value_bytes
from stallwise.physics.specs.hardware import Gpu, find_gpu

ORDER = 9
ARITHMETIC = Source("arithmetic on stated facts")


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """One product whose shape is stated and whose DRAM share was counted or stated."""
    m, n, k = (evidence.value(q) for q in (stated.GEMM_M, stated.GEMM_N, stated.GEMM_K))
    card = _card(evidence)
    if card is None or not min(m, n, k) > 0:
        return
    least = (m * k + k * n + m * n) * value_bytes(dtype_of(evidence, "fp16"))
    for scope in (WHOLE, *evidence.scopes("kernel")):
        view = evidence.within(scope) if scope is not WHOLE else evidence
        moved = _moved(view, card, 2.0 * m * n * k)
        if moved > least:
            yield Fact(expected.DRAM_MOVED, moved, ARITHMETIC, scope)
            yield Fact(expected.DRAM_LEAST, least, ARITHMETIC, scope, note=f"{m:.0f} x {n:.0f} x {k:.0f}")
            return


def _moved(view: Evidence, card: Gpu, flop: float) -> float:
    """By its share of the peak over the time of a launch: counted, or the product's operations at the rate it reaches."""
    rate = view.value(run.FLOP_RATE)
    seconds = view.value(kernel.TIME, flop / rate if rate > 0 else 0.0)
    share = view.value(kernel.DRAM_SHARE, 0.0)
    moving = view.value(kernel.DRAM_RATE, share * card.bandwidth_byte_per_s)
    return moving * seconds


def _card(evidence: Evidence) -> Gpu | None:
    named = evidence.all(kernel.DEVICE)
    return card_of(evidence) or (find_gpu(str(named[0].value)) if named else None)
