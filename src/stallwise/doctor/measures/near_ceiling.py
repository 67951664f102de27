"""How near the device's work is to the card's roofs, kernel by kernel.

Where the trace recorded shapes, FLOPs and bytes follow from them. Where it did not, the kind of kernel tells within
limits: matrix kernels of a vendor's library on tensor cores, and kernels that stream through memory in whole vectors,
are near a roof when they fill the card and run long enough (KINDS below, with what was measured of each). All others
are unknown, and an all-clear cannot rest on them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._matrix_shapes import MatrixShapes, matrix_shapes
from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._step_index import StepIndex, step_index
from stallwise.doctor.measures._vocabulary import Work, few_rows, matrix_precision, narrow_loads
from stallwise.evidence.catalog import roofline
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Timeline

ORDER = 30
NEAR = 0.6  # of the data sheet's roof: large library products reach 0.65 to 0.8, large copies 0.85 to 0.92
FULL_SHARE = 0.9  # of the SMs that must have a block: fewer leave part of the card idle
LONG_S = 20e-6  # shorter kernels are mostly start and tail, whatever they do
MATRIX = (Work.GEMM, Work.CONV, Work.ATTENTION)
MOVERS = (Work.ELEMENTWISE, Work.CAST, Work.NORM, Work.OPTIMIZER, Work.FUSED, Work.REDUCTION, Work.LOSS, Work.SOFTMAX)
# Measured on an H200: library products of 1,024 and more a side at 0.60 to 0.81 of peak (`stallwise plan validate --kind
# gemm`); vectorised pointwise, multi-tensor and compiler-made kernels over 16 MB at 0.74 to 0.92 of the memory's peak.
_TENSOR_ARITHMETIC = frozenset(("bf16", "fp16", "fp8", "tf32", "int8"))
_STREAMS = re.compile(
    r"vectorized|unrolled_elementwise|multi_tensor_apply|^triton_(poi|red|per|for)_|layer_?norm|rms_?norm|memset", re.I
)

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Kernels:
    """Kernels between the borders, other than communication and copies over the bus."""

    at: NDArray[np.intp]
    seconds: Floats
    work: NDArray[np.uint8]
    names: list[str]  # each once
    name: NDArray[np.intp]  # which of them
    full: Bools  # has a block for nearly every SM, and runs long


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Shares of the busy time, by what is known of its distance from a roof."""
    index = step_index(timeline)
    view, purposes = index.view, index.purposes
    if not len(view):
        return
    yield from _spread(index)
    counts = index.inside & view.is_kernel & ~purposes.communication & ~purposes.crosses_bus
    at = np.flatnonzero(counts)
    if not len(at):
        return
    codes, name = np.unique(timeline.name[view.work[at]], return_inverse=True)
    names = [timeline.names[c] for c in codes.tolist()]
    kernels = _Kernels(at, view.duration[at], purposes.work[at], names, name, _fills(index, at))
    busy_s = float(kernels.seconds.sum())
    if busy_s <= 0:
        return
    matrix = np.isin(kernels.work, MATRIX)
    shapes = matrix_shapes(index, at)
    by_shape, near_by_shape = _by_shape(index, shapes, len(at))
    by_kind = _by_kind(kernels) & ~by_shape
    unread = kernels.work == Work.OTHER

    def share(which: Bools) -> float:
        return float(kernels.seconds[which].sum()) / busy_s

    yield step_fact(index, roofline.NEAR_SHARE, share(near_by_shape | by_kind))
    yield step_fact(index, roofline.KNOWN_SHARE, share(by_shape | by_kind))
    yield step_fact(index, roofline.BY_SHAPE_SHARE, share(by_shape))
    yield step_fact(index, roofline.MATRIX_SHARE, share(matrix))
    yield step_fact(index, roofline.ATTENTION_SHARE, share(kernels.work == Work.ATTENTION))
    yield step_fact(index, roofline.UNREAD_SHARE, share(unread))
    if unread.any():
        longest = np.flatnonzero(unread)[int(np.argmax(kernels.seconds[unread]))]
        yield step_fact(index, roofline.UNREAD_NAME, names[name[longest]])
    yield from _rates(index, shapes)
    yield from _rates_by_part(index, shapes, kernels.work)


def _spread(index: StepIndex) -> Iterator[Item]:
    lengths = np.diff(index.windows.device)
    if len(lengths) > 1 and lengths.min() > 0:
        yield step_fact(index, roofline.STEP_SPREAD, float(lengths.max() / lengths.min() - 1.0))


def _by_shape(index: StepIndex, shapes: MatrixShapes | None, count: int) -> tuple[Bools, Bools]:
    known, near = np.zeros(count, bool), np.zeros(count, bool)
    gpu = index.view.gpu
    if shapes is None or gpu is None:
        return known, near
    floor = np.fmax(shapes.flop / shapes.peak_flop_per_s, shapes.size_bytes / gpu.bandwidth_byte_per_s)
    known = np.isfinite(floor) & (shapes.seconds > 0)
    near[known] = floor[known] >= NEAR * shapes.seconds[known]
    return known, near


def _rates(index: StepIndex, shapes: MatrixShapes | None) -> Iterator[Item]:
    gpu = index.view.gpu
    if shapes is None or gpu is None:
        return
    known = np.isfinite(shapes.flop) & np.isfinite(shapes.peak_flop_per_s)
    seconds = float(shapes.seconds[known].sum())
    if seconds > 0:
        yield step_fact(
            index,
            roofline.MATRIX_RATE_SHARE,
            float((shapes.flop[known] / shapes.peak_flop_per_s[known]).sum()) / seconds,
        )
        moved = float(np.nansum(shapes.size_bytes[known]))
        yield step_fact(index, roofline.MEMORY_RATE_SHARE, moved / gpu.bandwidth_byte_per_s / seconds)


def _rates_by_part(index: StepIndex, shapes: MatrixShapes | None, work: NDArray[np.uint8]) -> Iterator[Item]:
    """Whose bytes fill the memory: those that attention reads, or those of products with weights. One may hide the other."""
    gpu = index.view.gpu
    if shapes is None or gpu is None:
        return
    for quantity, kinds in (
        (roofline.ATTENTION_BYTES_SHARE, (Work.ATTENTION,)),
        (roofline.GEMM_BYTES_SHARE, (Work.GEMM,)),
    ):
        known = np.isfinite(shapes.size_bytes) & np.isin(work, kinds)
        seconds = float(shapes.seconds[known].sum())
        if seconds > 0:
            yield step_fact(index, quantity, float(shapes.size_bytes[known].sum()) / gpu.bandwidth_byte_per_s / seconds)


def _by_kind(kernels: _Kernels) -> Bools:
    """Kinds that are near a roof when they fill the card."""
    gemm = np.array([_is_library_gemm(name) for name in kernels.names], bool)[kernels.name]
    streams = np.array([_STREAMS.search(name) is not None for name in kernels.names], bool)[kernels.name]
    matrix, mover = np.isin(kernels.work, MATRIX), np.isin(kernels.work, MOVERS)
    found: Bools = kernels.full & ((matrix & gemm) | (mover & streams))
    return found


@lru_cache(maxsize=65536)
def _is_library_gemm(name: str) -> bool:
    """A product of a vendor's library on matrix units, for many rows, with whole-vector loads."""
    fused_attention = re.search(r"flash|fmha|sdpa|cudnn_generated", name, re.I) is not None
    on_units = matrix_precision(name) in _TENSOR_ARITHMETIC
    return (on_units or fused_attention) and not few_rows(name) and not narrow_loads(name)


def _fills(index: StepIndex, at: NDArray[np.intp]) -> Bools:
    t, view = index.timeline, index.view
    grids, which = t.distinct_values("grid", view.work[at])
    blocks = np.array([float(np.prod(g)) if isinstance(g, list) and g else np.nan for g in grids])[which]
    sms = next((d.sm_count for d in t.devices if d.sm_count), view.gpu.sm_count if view.gpu else 0)
    filled = blocks >= FULL_SHARE * sms if sms else np.zeros(len(at), bool)
    found: Bools = filled & (view.duration[at] >= LONG_S)
    return found
