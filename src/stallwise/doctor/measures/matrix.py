"""Matrix work: on which units, in which arithmetic, how well shaped, and how fast against the card's peak."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._matrix_shapes import MatrixShapes, matrix_shapes
from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._step_index import StepIndex, step_index
from stallwise.doctor.measures._vocabulary import Work, matrix_precision, narrow_loads, wide_loads
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.timeline import Timeline
from stallwise.physics.costs.precision import half_width_ratio, matrix_unit_ratio

Bools = NDArray[np.bool_]

TENSILE = "Cijk_"  # AMD's library runs fp32 products on matrix units too
# What aligned rows are worth: a kernel that loads one or two elements at once, in instructions of an older generation,
# ran at a half to less than a quarter of the aligned rate on the cards measured (H200: 4.3 times slower in mean).
ALIGNED_RATIO = (2.0, 4.5)
TRAFFIC_HALVED = 0.5  # memory-bound kernels move half the bytes in a 16-bit type


@dataclass(frozen=True)
class _Matrix:
    """The matrix kernels between the borders."""

    at: NDArray[np.intp]
    seconds: NDArray[np.float64]
    names: list[str]
    precision: NDArray[np.object_]


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Facts about matrix work."""
    index = step_index(timeline)
    if not len(index.view):
        return
    matrix = _matrix_work(index)
    if not len(matrix.at):
        return
    yield step_fact(index, catalog.MATRIX_MEDIAN, float(np.median(matrix.seconds)))
    shapes = matrix_shapes(index, matrix.at)
    yield from _units(index, matrix)
    yield from _alignment(index, matrix, shapes)
    if shapes is not None:
        yield from shapes.facts(index)


def _matrix_work(index: StepIndex) -> _Matrix:
    t = index.timeline
    at = np.flatnonzero(np.isin(index.purposes.work, (Work.GEMM, Work.CONV)) & index.inside & index.view.is_kernel)
    codes = t.name[index.view.work[at]]
    arithmetic = {int(c): matrix_precision(t.names[c]) for c in np.unique(codes)}
    precision = np.array([arithmetic[c] for c in codes.tolist()], dtype=object)
    return _Matrix(at, index.view.duration[at], [t.names[c] for c in codes.tolist()], precision)


def _units(index: StepIndex, matrix: _Matrix) -> Iterator[Item]:
    tensile = np.array([n.startswith(TENSILE) for n in matrix.names])
    plain = (matrix.precision == "fp32") & ~tensile
    wide = (matrix.precision == "tf32") | ((matrix.precision == "fp32") & tensile)
    ratio = matrix_unit_ratio(index.view.gpu)
    memory_bound = _other_traffic_s(index)
    if ratio is None:
        plain = np.zeros(len(plain), bool)
    simt_s = float(matrix.seconds[plain].sum()) / index.steps
    yield step_fact(index, catalog.SIMT_TIME, simt_s)
    total_s = float(matrix.seconds.sum()) / index.steps
    if simt_s > 0 and ratio is not None:
        yield step_fact(index, catalog.SIMT_KERNEL, _heaviest(matrix, plain))
        # In 16 bits everything else moves half the bytes, in proportion to how much of the model is fp32.
        side = (memory_bound + _wide_attention_s(index)) * simt_s / total_s
        yield _saving(index, catalog.SIMT_SAVING, simt_s, ratio, side)
    yield step_fact(index, catalog.DOUBLE_TIME, float(matrix.seconds[matrix.precision == "fp64"].sum()) / index.steps)
    wide_s = float(matrix.seconds[wide].sum()) / index.steps
    yield step_fact(index, catalog.WIDE_TIME, wide_s)
    if wide_s > 0:
        yield _saving(
            index, catalog.WIDE_SAVING, wide_s, half_width_ratio(index.view.gpu), memory_bound * wide_s / total_s
        )


def _saving(index: StepIndex, quantity: Quantity, seconds: float, ratio: tuple[float, float], side_s: float) -> Item:
    low, high = seconds * (1 - 1 / ratio[0]), seconds * (1 - 1 / ratio[1]) + TRAFFIC_HALVED * side_s
    return step_fact(index, quantity, (low + high) / 2, low=low, high=high)


def _other_traffic_s(index: StepIndex) -> float:
    """Memory-bound kernels outside the optimizer, whose states stay fp32."""
    movers = (Work.ELEMENTWISE, Work.CAST, Work.LAYOUT, Work.NORM, Work.SOFTMAX, Work.LOSS, Work.FUSED, Work.REDUCTION)
    which = index.inside & index.view.is_kernel & np.isin(index.purposes.work, movers)
    return float(index.view.duration[which].sum()) / index.steps


def _wide_attention_s(index: StepIndex) -> float:
    which = index.inside & (index.purposes.work == Work.ATTENTION)
    return 2.0 * float(index.view.duration[which].sum()) / index.steps  # nearly all of it goes, not half


def _heaviest(matrix: _Matrix, which: Bools) -> str:
    seconds: dict[str, float] = {}
    for i in np.flatnonzero(which).tolist():
        seconds[matrix.names[i]] = seconds.get(matrix.names[i], 0.0) + float(matrix.seconds[i])
    return max(seconds, key=seconds.__getitem__, default="")


def narrow_work(index: StepIndex) -> Bools:
    """By device work: matrix kernels that load one or two elements at once."""
    found = np.zeros(len(index.view), bool)
    matrix = _matrix_work(index)
    if len(matrix.at):
        found[matrix.at] = _narrow(matrix, matrix_shapes(index, matrix.at))
    return found


def _narrow(matrix: _Matrix, shapes: MatrixShapes | None) -> Bools:
    # One double is eight bytes: its kernels load single elements by nature.
    narrow: Bools = np.array([narrow_loads(n) for n in matrix.names], bool) & (matrix.precision != "fp64")
    if shapes is not None:
        vectors = np.array([wide_loads(n) for n in matrix.names], bool)
        narrow = narrow | (shapes.odd & shapes.slow & ~vectors)
    return narrow


def _alignment(index: StepIndex, matrix: _Matrix, shapes: MatrixShapes | None) -> Iterator[Item]:
    """By the kernel's own name, or by odd dimensions together with a low rate (padding libraries are not to blame)."""
    narrow = _narrow(matrix, shapes)
    seconds = float(matrix.seconds[narrow].sum()) / index.steps
    yield step_fact(index, catalog.NARROW_TIME, seconds)
    if seconds > 0:
        low, high = (seconds * (1 - 1 / r) for r in ALIGNED_RATIO)
        yield step_fact(index, catalog.NARROW_SAVING, (low + high) / 2, low=low, high=high)
        named = shapes.named(narrow) if shapes is not None else ""
        yield step_fact(index, catalog.NARROW_SHAPE, named or _heaviest(matrix, narrow))
