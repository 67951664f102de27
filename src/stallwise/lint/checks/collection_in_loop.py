"""Garbage is collected by hand in every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee

CAUSE = "python-gc-pauses"
FIX = "gc.disable() before the loop and gc.collect() every few hundred steps"
COST = "a full collection walks every Python object: 50 to 300 ms in a large job"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """gc.collect() where it runs every step."""
    for call in source.calls:
        if callee(call) in ("gc.collect", "collect") and source.hot(call):
            yield call, "gc.collect() in the training loop stops the host every step"
