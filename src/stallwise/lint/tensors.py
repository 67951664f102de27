"""Which names hold tensors: a small forward pass over assignments, enough to tell `loss` from a counter."""

from __future__ import annotations

import ast
import re

MAKES = re.compile(
    r"(^|\.)(loss\w*|criterion|model|net|module|cross_entropy|mse_loss|nll_loss|matmul|softmax|randn|rand|zeros|ones|"
    r"tensor|empty|full|arange|stack|cat|linear|conv\w*|relu|gelu|clip_grad_norm_|forward|norm|logits)(\(\))?$"
)
KEEPS = set(
    "mean sum float half bfloat16 to cuda cpu detach view reshape max min abs sqrt norm clone contiguous softmax argmax "
    "eq any all long mul div add".split()
)
READS = {"item", "tolist", "numpy", "numel", "size", "dim", "get_lr", "get_last_lr", "state_dict"}


def tensor_names(tree: ast.AST) -> set[str]:
    """Names assigned from something that makes or keeps a tensor; run to a fixed point."""
    names: set[str] = set()
    while True:
        before = len(names)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and _is_tensor(node.value, names):
                for target in node.targets:
                    names |= _names(target)
            elif (
                isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and _is_tensor(node.value, names)
            ):
                names.add(node.target.id)
        if len(names) == before:
            return names


def _is_tensor(node: ast.expr, names: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.BinOp):
        return _is_tensor(node.left, names) or _is_tensor(node.right, names)
    if isinstance(node, ast.UnaryOp):
        return _is_tensor(node.operand, names)
    if isinstance(node, ast.Subscript):
        return _is_tensor(node.value, names)
    if isinstance(node, ast.Attribute):
        return node.attr in ("loss", "logits", "grad", "data") or (node.attr == "T" and _is_tensor(node.value, names))
    if isinstance(node, ast.Call):
        return _call_is_tensor(node, names)
    return False


def _call_is_tensor(node: ast.Call, names: set[str]) -> bool:
    if isinstance(node.func, ast.Attribute):
        if node.func.attr in READS:
            return False
        if node.func.attr in KEEPS and _is_tensor(node.func.value, names):
            return True
        root = node.func.value
        if isinstance(root, ast.Name) and root.id in ("torch", "F") and MAKES.search(node.func.attr):
            return True
        return MAKES.search(node.func.attr) is not None and node.func.attr not in ("to", "model", "module", "norm")
    return isinstance(node.func, ast.Name) and MAKES.search(node.func.id) is not None


def _names(target: ast.expr) -> set[str]:
    if isinstance(target, ast.Name):
        return {target.id}
    if isinstance(target, ast.Tuple | ast.List):
        return {name for element in target.elts for name in _names(element)}
    return set()
