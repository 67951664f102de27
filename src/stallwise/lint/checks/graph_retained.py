"""The graph is kept after backward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee, is_constant, keyword

CAUSE = "memory-leak"
FIX = "drop retain_graph=True; detach what the next step needs"
COST = "activations stay until the next backward, and the graph may grow from step to step"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """backward(retain_graph=True) in the loop."""
    for call in source.calls:
        name = callee(call)
        if name.endswith("backward") and is_constant(keyword(call, "retain_graph"), True) and source.hot(call):
            yield call, "backward(retain_graph=True) every step keeps the graph alive"
