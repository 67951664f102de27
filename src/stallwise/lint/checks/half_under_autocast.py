"""The model is cast by hand and run under autocast as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee

CAUSE = "fp16-overflow"
FIX = "drop .half() and let autocast choose; keep the weights in fp32"
COST = "fp16 weights have no fp32 master: small updates vanish and large values overflow"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """.half() on anything in a script that uses autocast."""
    uses = any(callee(c).rsplit(".", 1)[-1] == "autocast" for c in source.calls)
    for call in source.calls:
        if uses and isinstance(call.func, ast.Attribute) and call.func.attr == "half" and not call.args:
            yield call, ".half() by hand in a script that runs under autocast"
