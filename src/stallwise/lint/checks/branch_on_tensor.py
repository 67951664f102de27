"""A branch asks for the value of a tensor in every step: the host waits for the device to decide."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source

CAUSE = "host-sync"
FIX = "decide on the device (torch.where, torch.nan_to_num), or look every so many steps"
COST = "a wait for all queued work, every step"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """if, while, assert and conditional expressions whose test compares or is a tensor."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.If | ast.While | ast.Assert | ast.IfExp) and source.hot(node):
            test = node.test
            if _asks(test, source):
                yield test, "a branch on a tensor's value in the training loop makes the host wait for the device"


def _asks(test: ast.expr, source: Source) -> bool:
    if isinstance(test, ast.BoolOp):
        return any(_asks(value, source) for value in test.values)
    if isinstance(test, ast.UnaryOp):
        return _asks(test.operand, source)
    if isinstance(test, ast.Compare):
        if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in test.ops):
            return False
        return any(source.is_tensor(side) for side in (test.left, *test.comparators))
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute):
        if test.func.attr in ("isnan", "isinf", "isfinite", "any", "all", "equal", "allclose") and test.args:
            return any(source.is_tensor(a) for a in test.args)
        return test.func.attr in ("any", "all") and _holds_tensor(test.func.value, source)
    return False


def _holds_tensor(node: ast.expr, source: Source) -> bool:
    if isinstance(node, ast.Compare):
        return any(source.is_tensor(side) for side in (node.left, *node.comparators))
    if isinstance(node, ast.Call):
        return source.is_tensor(node) or any(source.is_tensor(a) for a in node.args)
    return source.is_tensor(node)
