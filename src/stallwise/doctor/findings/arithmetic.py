"""Advice about number types that the card at hand can follow."""

from __future__ import annotations

from stallwise.doctor.findings.finding import Fix, Gain
from stallwise.evidence.catalog.card import MATRIX_TYPES
from stallwise.evidence.evidence import Evidence


def narrower_types(evidence: Evidence, gain: Gain | None, gain_tf32: Gain | None) -> tuple[Fix, ...]:
    """Autocast and TF32, as far as this card has them; all of them, with a word, where the card is unknown."""
    known = evidence.get(MATRIX_TYPES)
    types = set(str(known.value).split()) if known is not None else {"bf16", "tf32", "fp16"}
    where = "" if known is not None else " (where the card has it)"
    fixes = []
    if "bf16" in types:
        fixes.append(Fix(f"bf16 autocast: torch.autocast('cuda', torch.bfloat16){where}", gain, cost="a few lines",
                         risk="compare the loss curve"))  # fmt: skip
    elif "fp16" in types:
        fixes.append(Fix("fp16 autocast with a gradient scaler (this card has no bf16)", gain, cost="a few lines",
                         risk="range of fp16: watch the loss scale"))  # fmt: skip
    if "tf32" in types:
        fixes.append(Fix(f'torch.set_float32_matmul_precision("high"): TF32{where}', gain_tf32, cost="one line",
                         risk="10 bits of mantissa in products"))  # fmt: skip
    return tuple(fixes)
