"""A tensor is made on the host in every step and then copied."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee

CAUSE = "h2d-copy-exposed"
FIX = "make it on the device: torch.zeros(..., device=device)"
COST = "a blocking pageable copy, every step"


MAKERS = ("zeros", "ones", "randn", "rand", "arange", "full", "empty", "tensor", "randint", "eye", "linspace")


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """torch.zeros(...).to(device), .cuda()."""
    for call in source.calls:
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("to", "cuda") or not source.hot(call):
            continue
        made = call.func.value
        if isinstance(made, ast.Call) and callee(made).startswith("torch.") and callee(made)[6:] in MAKERS:
            yield call, f"{callee(made)}() is made on the host and copied every step"
