"""How much of the unfused time a norm before a matrix product takes: what fusing it away can win at most."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.doctor.measures._stated_model import card_of, dtype_of
from stallwise.evidence.catalog import autotune, expected, stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Source
from stallwise.physics.costs.fusion import pass_over_gemm
from stallwise.physics.specs.hardware import find_gpu

ORDER = 9
ARITHMETIC = Source("arithmetic on stated facts")
USUAL_CARD = "h100"
WIDEST_TILE = 512.0  # an N up to here is a tile of a configuration, not a linear
USUAL_OUTPUTS = (
    4096.0  # hidden size of 7B to 8B models: a narrow linear, so the share is rather too large than too small
)


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Only where somebody compares a kernel of their own with the unfused path."""
    if not evidence.get(stated.CUSTOM_SPEEDUP) and not evidence.get(autotune.CONFIGS):
        return
    card = card_of(evidence) or find_gpu(USUAL_CARD)
    if card is None:
        return
    known = [evidence.value(q, 0.0) for q in (stated.GEMM_N, stated.HIDDEN)]
    outputs = next((n for n in known if n > WIDEST_TILE), USUAL_OUTPUTS)
    over = pass_over_gemm(outputs, card, dtype_of(evidence))
    yield Fact(expected.FUSED_PASS, over, ARITHMETIC, note=f"{outputs:,.0f} outputs on {card.title}")
