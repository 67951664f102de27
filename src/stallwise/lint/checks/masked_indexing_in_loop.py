"""Indexing by a mask has a size that only the device knows: the host waits for it in every step."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee

CAUSE = "host-sync"
FIX = "keep the shape: torch.where(mask, x, 0), or weigh the loss by the mask"
COST = "a wait for all queued work, every step; and a new shape for the allocator and the compiler"


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """x[mask] that is read, and masked_select, in the loop."""
    masks = _masks(source)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_mask(node.slice, masks, source):
            remark = "indexing by a boolean mask in the training loop makes the host wait for the device"
        elif isinstance(node, ast.Call) and callee(node).rsplit(".", 1)[-1] == "masked_select":
            remark = "masked_select in the training loop makes the host wait for the device"
        else:
            continue
        if source.hot(node):
            yield node, remark


def _masks(source: Source) -> set[str]:
    """Names assigned from a comparison of tensors."""
    return {
        target.id
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Assign) and _compares(node.value, source)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _is_mask(index: ast.expr, masks: set[str], source: Source) -> bool:
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert):
        return _is_mask(index.operand, masks, source)
    return (isinstance(index, ast.Name) and index.id in masks) or _compares(index, source)


def _compares(node: ast.expr, source: Source) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        return _compares(node.left, source) or _compares(node.right, source)
    return isinstance(node, ast.Compare) and any(source.is_tensor(s) for s in (node.left, *node.comparators))
