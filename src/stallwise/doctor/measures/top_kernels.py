"""The kernels that take most of a step: how long, how often, what for, and how near the card's roof where shapes tell."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._by_name import by_name
from stallwise.doctor.measures._matrix_shapes import matrix_shapes
from stallwise.doctor.measures._step_index import StepIndex, step_index
from stallwise.doctor.measures._vocabulary import Work
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Timeline
from stallwise.evidence.top import top_table

MOST_ASKED = 20_000  # kernels whose shapes are looked at: steps are alike


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Times and counts are those of a mean step."""
    index = step_index(timeline)
    at = np.flatnonzero(index.inside & index.view.is_kernel)
    if not len(at):
        return
    code = timeline.name[index.view.work[at]].astype(np.int64)
    found = by_name(code, index.view.duration[at])
    purpose = np.zeros(len(timeline.names), np.uint8)
    purpose[code] = index.purposes.work[at]
    columns = {
        "name": np.array([timeline.names[c] for c in found.code.tolist()], dtype=object),
        "work": np.array([Work(int(purpose[c])).name.lower().replace("_", " ") for c in found.code], dtype=object),
        "time_s": found.total / index.steps,
        "share": found.total / index.steps / step_s(index),
        "count": found.count / index.steps,
        "median_s": found.median,
        "roof_share": _near_ceiling(index, at, code)[found.code],
    }
    yield top_table("kernels", columns, index.source, timeline.scope, unit=index.windows.unit, left_out=found.left_out,
                    of_whole=float(index.view.duration[at].sum()) / index.steps / step_s(index))  # fmt: skip


def step_s(index: StepIndex) -> float:
    """The mean step, of which shares are told."""
    return max(float(np.diff(index.windows.device).mean()), 1e-12)


def _near_ceiling(index: StepIndex, at: NDArray[np.intp], code: NDArray[np.int64]) -> NDArray[np.float64]:
    """By name: the least time that the card needs for the recorded shapes, over the time taken; NaN where none is known."""
    found = np.full(len(index.timeline.names), np.nan)
    floor, seconds = floors(index, at[:MOST_ASKED])
    known = np.isfinite(floor) & (seconds > 0)
    mine = code[:MOST_ASKED][known]
    least = np.bincount(mine, weights=floor[known], minlength=len(found))
    taken = np.bincount(mine, weights=seconds[known], minlength=len(found))
    np.divide(least, taken, out=found, where=taken > 0)
    near: NDArray[np.float64] = np.minimum(found, 1.0)
    return near


def floors(index: StepIndex, at: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least time that arithmetic or memory needs for each kernel, NaN where its shape is unknown; and its own time."""
    view, gpu = index.view, index.view.gpu
    shapes = matrix_shapes(index, at) if gpu is not None and len(at) else None
    if shapes is None or gpu is None:
        return np.full(len(at), np.nan), view.duration[at]
    return np.fmax(shapes.flop / shapes.peak_flop_per_s, shapes.size_bytes / gpu.bandwidth_byte_per_s), shapes.seconds
