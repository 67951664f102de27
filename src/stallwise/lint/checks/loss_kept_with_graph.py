"""A loss is stored with its whole autograd graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, dotted

CAUSE = "memory-leak"
FIX = "store loss.detach(), or add into a device tensor under no_grad"
COST = "the activations of every step stay in memory until it runs out"


def check(source: Source) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """losses.append(loss) and total += loss."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
            if node.args and _is_loss(node.args[0]) and source.loop_of(node) is not None:
                yield node, "a loss is appended with its graph: memory grows every step"
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _is_loss(node.value):
            target = dotted(node.target)
            if source.loop_of(node) is not None and not _used_for_backward(target, source):
                yield node, f"{target} += loss keeps the graph of every step"


def _is_loss(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_loss(node.left) or _is_loss(node.right)
    return isinstance(node, ast.Name | ast.Attribute) and dotted(node).lower().rsplit(".", 1)[-1].endswith("loss")


def _used_for_backward(name: str, source: Source) -> bool:
    """A total over several heads that is then back-propagated is no leak."""
    return any(
        c.func.attr == "backward" and dotted(c.func.value) == name
        for c in source.calls
        if isinstance(c.func, ast.Attribute)
    )
