"""A tensor is printed in every step, which copies it to the host first."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee

CAUSE = "host-sync"
FIX = "print every so many steps, under a test like step % 100 == 0"
COST = "a wait for all queued work, every step"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """print and logger calls with a tensor among their arguments."""
    for call in source.calls:
        name = callee(call)
        if not (
            name == "print" or name.rsplit(".", 1)[-1] in ("info", "debug", "warning", "write", "set_postfix", "log")
        ):
            continue
        if name == "self.log":  # Lightning keeps the tensor on the device and reduces it later
            continue
        if source.hot(call) and any(_shows_tensor(a, source) for a in [*call.args, *(k.value for k in call.keywords)]):
            yield call, f"{name}() of a tensor in the training loop makes the host wait for the device every step"


def _shows_tensor(node: ast.expr, source: Source) -> bool:
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(v, ast.FormattedValue) and source.is_tensor(v.value) for v in node.values)
    if isinstance(node, ast.Dict):
        return any(source.is_tensor(v) for v in node.values)
    return source.is_tensor(node)
