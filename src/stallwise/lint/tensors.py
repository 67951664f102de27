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


MOVES = {"to", "cuda"}  # what is taken out of a batch and moved is a tensor


def tensor_names(tree: ast.AST) -> set[str]:
    """Names assigned from something that makes, keeps or moves a tensor; run to a fixed point."""
    names = _moved(tree)
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


def _moved(tree: ast.AST) -> set[str]:
    """Names assigned from parts of a batch that are moved to a device: `x = x.to(device)` for an x of the loop."""
    batch: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.comprehension):
            batch |= _names(node.target)
    for node in ast.walk(tree):  # its parts, and batches taken by hand
        if isinstance(node, ast.Assign) and (_root(node.value) in batch or _takes_next(node.value)):
            batch |= {name for target in node.targets for name in _names(target)}
    return {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and any(_moves(part, batch) for part in _parts(node.value))
        for target in node.targets
        for name in _names(target)
    }


def _moves(node: ast.expr, batch: set[str]) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in MOVES
        and _root(node.func.value) in batch
    )


def _parts(value: ast.expr) -> list[ast.expr]:
    """What a name gets, or each of several names, or each place of a container."""
    if isinstance(value, ast.Tuple | ast.List):
        return value.elts
    if isinstance(value, ast.DictComp):
        return [value.value]
    return [value.elt] if isinstance(value, ast.ListComp | ast.GeneratorExp) else [value]


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _takes_next(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next"


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
