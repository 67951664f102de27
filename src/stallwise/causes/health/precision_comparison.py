"""Two ways to compute the same differ by what the format rounds away, and by no more: that is arithmetic, not a fault.

Refuted by: another layer, shape or run that differs by more (the largest difference counts), values that are no numbers.
"""

from __future__ import annotations

from stallwise.causes.health._second_number import highest, of_now
from stallwise.doctor.findings.finding import Fix, Reason
from stallwise.doctor.findings.proof import Limit, Proof
from stallwise.evidence.catalog import numerics
from stallwise.evidence.evidence import Evidence

TF32_UNIT = 2.0**-11  # half the last of ten mantissa bits: what rounding one input may change
FP32_UNIT = 2.0**-24
LONGEST_SUM = 65536.0  # terms of a product; random roundings of so many add up to the root of it
TWO_INPUTS = 2.0  # both factors are rounded


def precision_comparison(evidence: Evidence) -> Proof | None:
    """The difference with TF32 lies within its rounding, and goes away without it."""
    rounded, full = (highest(of_now(evidence, q)) for q in (numerics.TF32_DIFFERENCE, numerics.FP32_DIFFERENCE))
    bad = evidence.get(numerics.BAD_LAYER)
    if rounded is None:
        return None
    most, most_full = TWO_INPUTS * TF32_UNIT, FP32_UNIT * LONGEST_SUM**0.5
    summary = f"with TF32 a product differs by {rounded.number:.1e}; rounding both factors to ten bits may change it by {most:.1e}"
    lacks = ""
    if bad is not None:
        lacks = f"{bad.value} holds values that are no numbers."
    elif rounded.number > most:
        lacks = f"TF32 explains a difference of {most:.1e}, not {rounded.number:.1e}."
    elif full is None:
        lacks = "nothing here tells the difference with TF32 off."
    elif full.number > most_full:
        lacks = f"without TF32 {full.number:.1e} is left, where float32 sums leave at most {most_full:.1e}."
    also = "" if full is None else f", and without it by {full.number:.1e}"
    return Proof(
        of="numbers",
        says=summary + also,
        because=(Reason.of(summary + also, *(f for f in (rounded, full) if f is not None)),),
        confidence=0.85,
        limit=None
        if lacks
        else Limit("digits of the format", rounded.number / most, f"{summary}; where these digits matter switch TF32 off, at up to 8x the time",
                   (Fix("bf16 where fewer digits do", worth="up to twice the rate of TF32", risk="8 bits of mantissa"),)),
        lacks=lacks,
        objects=bool(lacks) and (full is not None or rounded.number > most or bad is not None),
    )  # fmt: skip
