"""The optimizer's step: how many kernels, how long with its gaps, and whether kernels take many tensors at once.

Beside it, loops that update tensors one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._spans import Spans
from stallwise.doctor.measures._step_index import StepIndex, step_index
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Timeline

_MANY_TENSORS = (
    "multi_tensor_apply",
    "fused_adam",
    "FusedAdam",
    "FusedOptimizer",
    "fused_sgd",
    "triton_for",
    "triton_poi",
)


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Facts about the optimizer's part of a step, and about updates beside it."""
    index = step_index(timeline)
    mine = index.inside & index.purposes.in_optimizer
    if mine.any():
        view = index.view
        phase = _phase(index, mine)
        many = np.array([any(w in n for w in _MANY_TENSORS) for n in timeline.names])[timeline.name[view.work]]
        seconds = float(view.duration[mine].sum())
        yield step_fact(index, catalog.OPTIMIZER_KERNELS, float(mine.sum()) / index.steps)
        yield step_fact(index, catalog.OPTIMIZER_SPAN, phase.total_s / index.steps)
        yield step_fact(index, catalog.OPTIMIZER_IDLE, (phase - index.busy).total_s / index.steps)
        yield step_fact(
            index, catalog.OPTIMIZER_FUSED_SHARE, float(view.duration[mine & many].sum()) / seconds if seconds else 0.0
        )
    yield from _walked(index)


def _walked(index: StepIndex) -> Iterator[Item]:
    walked = index.inside & index.walked
    if not walked.any():
        return
    phase = _phase(index, walked)
    yield step_fact(index, catalog.WALKED_KERNELS, float(walked.sum()) / index.steps)
    yield step_fact(index, catalog.WALKED_SPAN, phase.total_s / index.steps)
    yield step_fact(index, catalog.WALKED_IDLE, (phase - index.busy).total_s / index.steps)


def _phase(index: StepIndex, mine: NDArray[np.bool_]) -> Spans:
    """From the first to the last of this work in each step."""
    view = index.view
    step = np.clip(np.searchsorted(index.windows.device, view.start[mine], side="right") - 1, 0, index.steps - 1)
    first = np.full(index.steps, np.inf)
    last = np.full(index.steps, -np.inf)
    np.minimum.at(first, step, view.start[mine])
    np.maximum.at(last, step, view.end[mine])
    here = last > first
    return Spans.of(first[here], last[here])
