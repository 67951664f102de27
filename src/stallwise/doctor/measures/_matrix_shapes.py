"""Shapes of matrix products, where the trace recorded them: rates, rows, and dimensions that do not align."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._step_index import StepIndex
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.physics.costs.operators import Cost, element_bytes, known_operators, operator_cost
from stallwise.physics.specs.hardware import Gpu

CHUNK_BYTES = 16  # vector loads and bulk copies need rows that start on this many bytes
SLOW_SHARE = 0.35  # of what large products reach: misaligned kernels run at a half to a quarter of it
LONG_S = 30e-6  # shorter kernels are mostly start and tail
BIG_FLOP = 1e9  # smaller products are too short for a rate to mean anything
_TYPE_OF_BYTES = {2: "bf16", 4: "tf32", 1: "fp8", 8: "fp64"}


@dataclass(frozen=True, eq=False)
class MatrixShapes:
    """Columns about matrix kernels; NaN or False where the shape is unknown."""

    at: NDArray[np.intp]
    flop: NDArray[np.float64]
    seconds: NDArray[np.float64]
    rows: NDArray[np.float64]
    odd: NDArray[np.bool_]
    slow: NDArray[np.bool_]
    peak_flop_per_s: NDArray[np.float64]
    text: list[str]
    size_bytes: NDArray[np.float64]  # operands and result, each once

    def facts(self, index: StepIndex) -> Iterator[Item]:
        """Rate and rows, weighted by time."""
        known = np.isfinite(self.flop) & (self.flop > 0)
        if not known.any():
            return
        ideal = self.flop[known] / self.peak_flop_per_s[known]
        if np.isfinite(ideal).all():
            yield step_fact(index, catalog.MATRIX_RATE_SHARE, float(ideal.sum() / self.seconds[known].sum()))
        order = np.argsort(self.rows[known])
        weight = np.cumsum(self.seconds[known][order])
        middle = int(np.searchsorted(weight, weight[-1] / 2))
        yield step_fact(index, catalog.MATRIX_ROWS, float(self.rows[known][order][min(middle, len(order) - 1)]))

    def named(self, which: NDArray[np.bool_]) -> str:
        """The shape that takes most of this time."""
        seconds: dict[str, float] = {}
        for i in np.flatnonzero(which).tolist():
            if self.text[i]:
                seconds[self.text[i]] = seconds.get(self.text[i], 0.0) + float(self.seconds[i])
        return max(seconds, key=seconds.__getitem__, default="")


def matrix_shapes(index: StepIndex, at: NDArray[np.intp]) -> MatrixShapes | None:
    """Costs of the operators behind these kernels; None when no shapes were recorded."""
    view, t = index.view, index.timeline
    if not len(view.tree):
        return None
    operator = _known_above(index, view.operator[at])
    rows = np.where(operator >= 0, view.tree.row[np.maximum(operator, 0)], -1)
    detail = np.where(rows >= 0, t.detail[np.maximum(rows, 0)], -1)
    if not (detail >= 0).any():
        return None
    seconds = view.duration[at]
    asked = np.flatnonzero(detail >= 0)
    alike = t.name[rows[asked]] * np.int64(len(t.details)) + detail[asked]
    _, first, which = np.unique(alike, return_index=True, return_inverse=True)
    sorts = [_sort(view.gpu, t.text(row), t.details_of(row)) for row in rows[asked[first]].tolist()]
    # A product may be split over several kernels: its work is shared out by time.
    spent = np.bincount(np.maximum(operator, 0), weights=seconds, minlength=len(view.tree))
    by_row = np.full((5, len(at)), np.nan)
    by_row[:, asked] = np.array([numbers for numbers, _, _ in sorts]).T[:, which]
    by_row[:3, asked] = by_row[:3, asked] * seconds[asked] / np.maximum(spent[operator[asked]], 1e-12)
    flop, size, floor, count, peak = by_row
    odd, text = np.zeros(len(at), bool), [""] * len(at)
    odd[asked] = np.array([is_odd for _, is_odd, _ in sorts], bool)[which]
    for i, sort in zip(asked.tolist(), which.tolist(), strict=True):
        text[i] = sorts[sort][2]
    slow = np.nan_to_num(floor, nan=np.inf) < SLOW_SHARE * seconds
    slow &= (np.nan_to_num(flop) > BIG_FLOP) & (seconds > LONG_S)
    return MatrixShapes(at, flop, seconds, count, odd, slow, peak, text, size)


def _known_above(index: StepIndex, operator: NDArray[np.int64]) -> NDArray[np.int64]:
    """The nearest operator, upwards, whose cost follows from its shapes."""
    t, tree = index.timeline, index.view.tree
    names = known_operators()
    known = np.array([n in names for n in t.names], bool)
    found = operator.copy()
    for _ in range(4):
        climb = (found >= 0) & ~known[t.name[tree.row[found]]]
        found = np.where(climb, tree.parent[found], found)
    return np.where((found >= 0) & known[t.name[tree.row[found]]], found, -1)


def _sort(
    gpu: Gpu | None, name: str, detail: dict[str, object]
) -> tuple[tuple[float, float, float, float, float], bool, str]:
    """Of all products of one shape: arithmetic, bytes and the least time the card needs, rows and peak; whether a row is odd."""
    cost, width = _cost(name, detail)
    if cost is None:
        return (np.nan,) * 5, False, ""
    numbers = (cost.flop, cost.elements * width, _floor_s(gpu, cost, width), cost.rows, _peak(gpu, width))
    odd = width == 2 and any(n > 8 and n * width % CHUNK_BYTES for n in cost.inner[1:])
    return numbers, odd, " x ".join(str(n) for n in cost.inner)


def _cost(name: str, detail: dict[str, object]) -> tuple[Cost | None, int]:
    dims = detail.get("Input Dims") or detail.get("Input dims")
    if not isinstance(dims, list):
        return None, 0
    types = detail.get("Input type") or detail.get("Input Type") or []
    concrete = detail.get("Concrete Inputs") or []
    widths = [element_bytes(str(x)) for x in types if x] if isinstance(types, list) else []
    cost = operator_cost(name, dims, concrete if isinstance(concrete, list) else ())
    return cost, widths[0] if widths else 4


def _floor_s(gpu: Gpu | None, cost: Cost, width: int) -> float:
    if gpu is None:
        return float("nan")
    return max(cost.flop / _peak(gpu, width), cost.elements * width / gpu.bandwidth_byte_per_s)


def _peak(gpu: Gpu | None, width: int) -> float:
    return gpu.peak(_TYPE_OF_BYTES.get(width, "tf32")) if gpu is not None else float("nan")
