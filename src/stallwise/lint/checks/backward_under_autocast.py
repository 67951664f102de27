"""The backward pass runs inside the autocast context."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, dotted

CAUSE = "fp16-underflow"
FIX = "leave the autocast block before loss.backward()"
COST = "backward ops then pick types by themselves; gradients can lose range"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """.backward() below `with autocast(...)`."""
    for call in source.calls:
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "backward":
            continue
        for above in source.above(call):
            if isinstance(above, ast.With) and any("autocast" in dotted(item.context_expr) for item in above.items):
                yield call, "backward() inside the autocast context"
                break
