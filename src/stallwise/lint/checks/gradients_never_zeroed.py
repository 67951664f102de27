"""Gradients are never cleared: every step adds to the last."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee

CAUSE = "grad-explosion"
FIX = "call optimizer.zero_grad(set_to_none=True) once a step"
COST = "the update direction is the sum of all steps so far"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """A loop that calls backward and an optimizer step, in a file that never clears gradients."""
    clears = any(callee(c).endswith(("zero_grad", "grad.zero_")) for c in source.calls)
    sets = any(
        isinstance(n, ast.Assign) and any(isinstance(t, ast.Attribute) and t.attr == "grad" for t in n.targets)
        for n in ast.walk(source.tree)
    )
    if clears or sets:
        return
    for call in source.calls:
        loop = source.loop_of(call)
        name = callee(call).lower()
        if loop is not None and name.endswith(".step") and ("optim" in name or name in ("opt.step", "scaler.step")):
            yield call, "no zero_grad anywhere: gradients of all steps add up"
            return
