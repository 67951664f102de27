"""Gradients are zeroed by writing zeros instead of dropping them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.edit import Edit, set_keyword
from stallwise.lint.source import Source, dotted, is_constant, keyword

CAUSE = "dram-bandwidth-bound"
FIX = "zero_grad(set_to_none=True), the default since PyTorch 2.0"
COST = "one write and one read of all gradients a step: 2 x 2 to 4 bytes a parameter over the bandwidth"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """zero_grad(set_to_none=False) and p.grad.zero_()."""
    for call in source.calls:
        if not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr == "zero_grad" and is_constant(keyword(call, "set_to_none"), False):
            yield call, "zero_grad(set_to_none=False) writes zeros to every gradient"
        elif call.func.attr == "zero_" and dotted(call.func.value).endswith(".grad"):
            yield call, "grad.zero_() writes zeros to every gradient"


def mended(call: ast.Call) -> Edit | None:
    """Gradients dropped; grad.zero_() by hand is left to its author."""
    assert isinstance(call.func, ast.Attribute)
    return set_keyword(call, "set_to_none", "True") if call.func.attr == "zero_grad" else None
