"""FLOPs and bytes of single operators from the shapes of their inputs, as a trace records them.

A product of m x k by k x n takes 2mnk; a convolution the same with k = input channels per group times the window;
attention two products of queries by keys. Bytes count each operand and the result once: what the best kernel moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

Dims = Sequence[Sequence[int]]
Concrete = Sequence[str]


@dataclass(frozen=True, slots=True)
class Cost:
    """What an operator must compute and move at least."""

    flop: float
    elements: float  # of operands and result together
    rows: int = 0  # the smaller outer dimension of the product
    inner: tuple[int, ...] = ()  # dimensions that decide alignment


def gemm(m: int, n: int, k: int, batch: int = 1) -> Cost:
    """batch times (m x k by k x n)."""
    return Cost(2.0 * batch * m * n * k, float(batch) * (m * k + k * n + m * n), min(m, n), (m, n, k))


def _mm(dims: Dims, skip: int) -> Cost | None:
    left, right = dims[skip], dims[skip + 1]
    if len(left) < 2 or len(right) < 2:
        return None
    return gemm(left[-2], right[-1], left[-1], prod(left[:-2]))


def _linear(dims: Dims) -> Cost | None:
    rows, weight = dims[0], dims[1]
    if len(weight) != 2 or not rows:
        return None
    return gemm(prod(rows[:-1]), weight[0], weight[1])


def _attention(dims: Dims) -> Cost | None:
    query, key = dims[0], dims[1]
    if len(query) != 4 or len(key) != 4:
        return None
    batch, heads, rows, width = query
    columns = key[2]
    return Cost(4.0 * batch * heads * rows * columns * width, 2.0 * prod(query) + 2.0 * prod(key), rows)


def _convolution(dims: Dims, concrete: Concrete) -> Cost | None:
    image, weight = dims[0], dims[1]
    if len(image) != len(weight) or len(weight) < 3:
        return None
    stride, padding, dilation = (_numbers(concrete, i, len(weight) - 2) for i in (3, 4, 5))
    out = [
        (size + 2 * p - d * (window - 1) - 1) // max(s, 1) + 1
        for size, window, s, p, d in zip(image[2:], weight[2:], stride, padding, dilation, strict=True)
    ]
    pixels = image[0] * prod(out)
    return gemm(pixels, weight[0], prod(weight[1:]))


def _numbers(concrete: Concrete, index: int, count: int) -> list[int]:
    defaults = {3: 1, 4: 0, 5: 1}
    text = concrete[index] if index < len(concrete) else ""
    found = [int(part) for part in str(text).strip("[]").replace(",", " ").split() if part.lstrip("-").isdecimal()]
    if len(found) == 1:
        found *= count
    return found if len(found) == count else [defaults[index]] * count


_KNOWN: dict[str, Callable[[Dims, Concrete], Cost | None]] = {
    "aten::mm": lambda d, c: _mm(d, 0),
    "aten::bmm": lambda d, c: _mm(d, 0),
    "aten::_scaled_mm": lambda d, c: _mm(d, 0),
    "aten::_int_mm": lambda d, c: _mm(d, 0),
    "aten::addmm": lambda d, c: _mm(d, 1),
    "aten::baddbmm": lambda d, c: _mm(d, 1),
    "aten::linear": lambda d, c: _linear(d),
    "aten::_scaled_dot_product_flash_attention": lambda d, c: _attention(d),
    "aten::_scaled_dot_product_efficient_attention": lambda d, c: _attention(d),
    "aten::_scaled_dot_product_cudnn_attention": lambda d, c: _attention(d),
    "aten::cudnn_convolution": _convolution,
    "aten::miopen_convolution": _convolution,
    "aten::convolution": _convolution,
    "aten::_convolution": _convolution,
}


def known_operators() -> frozenset[str]:
    """Operators whose cost follows from their shapes."""
    return frozenset(_KNOWN)


def operator_cost(name: str, dims: Dims, concrete: Concrete = ()) -> Cost | None:
    """The cost of one call; None where the operator or its shapes are not understood."""
    count = _KNOWN.get(name)
    if count is None:
        return None
    try:
        found = count(dims, concrete)
    except (IndexError, TypeError, ValueError):
        return None
    return found if found is not None and found.flop > 0 else None


ELEMENT_BYTES = {
    "double": 8, "float": 4, "float32": 4, "int": 4, "long int": 8, "c10::half": 2, "c10::bfloat16": 2,
    "half": 2, "bfloat16": 2, "c10::float8_e4m3fn": 1, "c10::float8_e5m2": 1, "signed char": 1, "unsigned char": 1,
}  # fmt: skip


def element_bytes(type_name: str) -> int:
    """Bytes of one element of a type as traces write it; 4 where unknown."""
    return ELEMENT_BYTES.get(type_name.lower(), 4)
