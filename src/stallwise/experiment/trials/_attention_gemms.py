"""The products that may begin or end an attention: matmul, bmm, baddbmm and einsum, as queries and keys, or weights and values."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from stallwise.experiment.trials._attention_chain import Ended

NAMES = ("matmul", "bmm", "baddbmm", "einsum")
Start = Tuple[Any, Any, float, Any]  # queries, keys, scale, bias


def start(torch: Any, name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Start]:
    """Queries and keys of a product that may give scores; None where it cannot."""
    if name == "einsum":
        return _einsum_start(torch, args)
    scale, bias = 1.0, None
    if name == "baddbmm":
        bias, args = args[0], args[1:]
        scale = float(kwargs.get("alpha", 1.0))
        beta = kwargs.get("beta", 1.0)
        bias = None if beta == 0 else bias if beta == 1 else bias * beta
        kwargs = {}
    if kwargs or len(args) != 2 or not all(_operand(torch, a) for a in args):
        return None
    q, k = args
    if q.shape[-1] != k.shape[-2]:
        return None
    return q, k.transpose(-2, -1), scale, bias


def _operand(torch: Any, value: Any) -> bool:
    return type(value) is torch.Tensor and value.dim() >= 3 and value.is_floating_point()


def _einsum_start(torch: Any, args: Tuple[Any, ...]) -> Optional[Start]:
    parsed = _parsed(torch, args)
    if parsed is None or not all(_operand(torch, a) for a in args[1:3]):
        return None
    (one, other, out), first, second = parsed
    summed = [c for c in one if c in other and c not in out]
    if len(summed) != 1 or len(out) < 3:
        return None
    *batch, row, column = list(out)
    if row in other and column in one:
        one, other, first, second = other, one, second, first
    if sorted(one) != sorted([*batch, row, *summed]) or sorted(other) != sorted([*batch, column, *summed]):
        return None
    return _ordered(first, one, [*batch, row, *summed]), _ordered(second, other, [*batch, column, *summed]), 1.0, None


def end(
    torch: Any, name: str, at: int, args: Tuple[Any, ...], kwargs: Dict[str, Any]
) -> Tuple[Any, Callable[[Any], Any]]:
    """The values that weights (argument `at`) are multiplied with, and what brings the result into the program's order."""
    if name == "einsum":
        return _einsum_end(torch, at, args)
    if name == "baddbmm" or at or kwargs or len(args) != 2 or not torch.is_tensor(args[1]) or args[1].dim() < 3:
        raise Ended("%s after the softmax" % name)
    return args[1], lambda out: out


def _einsum_end(torch: Any, at: int, args: Tuple[Any, ...]) -> Tuple[Any, Callable[[Any], Any]]:
    parsed = _parsed(torch, args)
    if parsed is None:
        raise Ended("an einsum of another form")
    (weights, values, out), first, second = parsed
    v = second
    if at == 2:
        weights, values, v = values, weights, first
    *batch, row, column = list(weights)
    fresh = [c for c in values if c not in weights]
    if (
        len(fresh) != 1
        or sorted(values) != sorted([*batch, column, *fresh])
        or sorted(out) != sorted([*batch, row, *fresh])
    ):
        raise Ended("an einsum of another form")
    order = [[*batch, row, *fresh].index(c) for c in out]
    return _ordered(v, values, [*batch, column, *fresh]), lambda result: result.permute(order)


def _parsed(torch: Any, args: Tuple[Any, ...]) -> Optional[Tuple[Tuple[str, str, str], Any, Any]]:
    """Labels of two operands and the result; an ellipsis becomes capital letters."""
    if len(args) != 3 or not isinstance(args[0], str) or "->" not in args[0]:
        return None
    left, out = args[0].replace(" ", "").split("->")
    parts = left.split(",")
    if len(parts) != 2 or not all(torch.is_tensor(a) for a in args[1:]):
        return None
    hidden = {a.dim() - len(p.replace("...", "")) for p, a in zip(parts, args[1:]) if "..." in p}
    if len(hidden) > 1:
        return None
    letters = "ABCDEFGH"[: next(iter(hidden), 0)]
    one, other, result = (text.replace("...", letters) for text in (*parts, out))
    if any(len(set(text)) != len(text) for text in (one, other, result)):
        return None
    return (one, other, result), args[1], args[2]


def _ordered(tensor: Any, labels: str, wanted: List[str]) -> Any:
    return tensor.permute([labels.index(c) for c in wanted])
