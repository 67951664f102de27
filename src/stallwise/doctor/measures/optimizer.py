"""The optimizer's step: how many kernels, how long with its gaps, and whether kernels take many tensors at once.

Beside it, loops that update tensors one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._report import said
from stallwise.doctor.measures._spans import Spans
from stallwise.doctor.measures._step_book import StepBook, book_of
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
    book = book_of(timeline)
    mine = book.inside & book.purposes.in_optimizer
    if mine.any():
        view = book.view
        phase = _phase(book, mine)
        many = np.array([any(w in n for w in _MANY_TENSORS) for n in timeline.names])[timeline.name[view.work]]
        seconds = float(view.duration[mine].sum())
        yield said(book, catalog.OPTIMIZER_KERNELS, float(mine.sum()) / book.steps)
        yield said(book, catalog.OPTIMIZER_SPAN, phase.total_s / book.steps)
        yield said(book, catalog.OPTIMIZER_IDLE, (phase - book.busy).total_s / book.steps)
        yield said(
            book, catalog.OPTIMIZER_FUSED_SHARE, float(view.duration[mine & many].sum()) / seconds if seconds else 0.0
        )
    yield from _walked(book)


def _walked(book: StepBook) -> Iterator[Item]:
    walked = book.inside & book.walked
    if not walked.any():
        return
    phase = _phase(book, walked)
    yield said(book, catalog.WALKED_KERNELS, float(walked.sum()) / book.steps)
    yield said(book, catalog.WALKED_SPAN, phase.total_s / book.steps)
    yield said(book, catalog.WALKED_IDLE, (phase - book.busy).total_s / book.steps)


def _phase(book: StepBook, mine: NDArray[np.bool_]) -> Spans:
    """From the first to the last of this work in each step."""
    view = book.view
    step = np.clip(np.searchsorted(book.windows.device, view.start[mine], side="right") - 1, 0, book.steps - 1)
    first = np.full(book.steps, np.inf)
    last = np.full(book.steps, -np.inf)
    np.minimum.at(first, step, view.start[mine])
    np.maximum.at(last, step, view.end[mine])
    here = last > first
    return Spans.of(first[here], last[here])
