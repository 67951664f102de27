"""Attention that writes its scores: whatever runs between the two batched products around a softmax.

Told by order and operator, not by size: scores = bmm(q, k); scale, mask, softmax, dropout, casts; out = bmm(scores, v),
and the same in the backward pass around the softmax's gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._spans import Spans
from stallwise.doctor.measures._step_index import StepIndex
from stallwise.doctor.measures._vocabulary import Work

FARTHEST = 24  # kernels between a softmax and its product: scale, mask, dropout, casts and copies, twice over
BESIDE = 3  # kernels from one product of the scores to the next
_BATCHED = ("aten::bmm", "aten::baddbmm", "aten::einsum", "aten::matmul")
# Work that stands between no score and its product: another product, a norm, or the routing of experts.
_BREAKS = (Work.GEMM, Work.CONV, Work.ATTENTION, Work.NORM, Work.COMMUNICATION)
_ROUTING = (
    "aten::topk", "aten::sort", "aten::cumsum", "aten::scatter", "aten::scatter_", "aten::scatter_add_", "aten::index_add_",
    "aten::nonzero", "aten::one_hot", "aten::bincount", "aten::multinomial",
)  # fmt: skip
_SOFTMAX = ("aten::_softmax", "aten::_softmax_backward_data", "aten::softmax", "aten::_masked_softmax")


@dataclass(frozen=True, eq=False)
class _Scores:
    """Work in launch order; which of it lies between a softmax and its products; which are those products, and of each softmax
    the product before and the one after it."""

    order: NDArray[np.intp]
    between: NDArray[np.bool_]
    gemms: NDArray[np.bool_]
    before: NDArray[np.intp]
    after: NDArray[np.intp]


@lru_cache(maxsize=1)  # several measures ask in turn
def _near_softmax(index: StepIndex) -> _Scores:
    view, t = index.view, index.timeline
    order = np.flatnonzero(index.inside)
    order = order[np.argsort(view.launch_start[order], kind="stable")]
    nothing = np.zeros(len(order), bool)
    if not len(view.tree):
        return _Scores(order, nothing, nothing, order[:0], order[:0])
    operator = view.operator[order]
    code = np.where(operator >= 0, t.name[view.tree.row[np.maximum(operator, 0)]], -1)
    softmax = np.isin(code, [i for i, n in enumerate(t.names) if n in _SOFTMAX])
    gemm = np.isin(code, [i for i, n in enumerate(t.names) if n in _BATCHED])
    if not softmax.any() or not gemm.any():
        return _Scores(order, nothing, nothing, order[:0], order[:0])
    where = np.flatnonzero(gemm)
    edge = np.zeros(len(order) + 1, np.int64)
    chosen = nothing.copy()
    at = np.flatnonzero(softmax)
    place = np.searchsorted(where, at)
    has = (place > 0) & (place < len(where))
    at, place = at[has], place[has]
    before, after = where[place - 1], where[place]
    routing = np.isin(code, [i for i, n in enumerate(t.names) if n in _ROUTING])
    breaks = (np.isin(index.purposes.work[order], _BREAKS) & ~gemm) | routing
    passed = np.concatenate(([0], np.cumsum(breaks)))
    near = (at - before <= FARTHEST) & (after - at <= FARTHEST) & (passed[after] == passed[before + 1])
    np.add.at(edge, before[near] + 1, 1)
    np.add.at(edge, after[near], -1)
    chosen[before[near]] = chosen[after[near]] = True
    # In the backward pass the gradients of values and keys are products of the scores too, right beside.
    gaps = (np.diff(where) > BESIDE) | (passed[where[1:]] != passed[where[:-1] + 1])
    run = np.concatenate(([0], np.cumsum(gaps)))
    chosen[where] = np.isin(run, run[chosen[where]])
    between = (np.cumsum(edge[:-1]) > 0) & ~gemm
    return _Scores(order, between, chosen, order[before[near]], order[after[near]])


def score_traffic(index: StepIndex) -> NDArray[np.bool_]:
    """By device work: kernels and copies that read or write materialised scores."""
    scores = _near_softmax(index)
    found = np.zeros(len(index.view), bool)
    moves = index.purposes.work[scores.order]
    found[scores.order] = scores.between & (moves != Work.GEMM) & (moves != Work.COMMUNICATION)
    return found


def score_gemms(index: StepIndex) -> NDArray[np.bool_]:
    """By device work: the batched products next to those scores."""
    scores = _near_softmax(index)
    found = np.zeros(len(index.view), bool)
    found[scores.order] = scores.gemms
    return found


def score_spans(index: StepIndex) -> Spans:
    """When the host is between the hand-over of the product before a softmax and that of the one after it."""
    scores, view, t = _near_softmax(index), index.view, index.timeline
    one, two = scores.before, scores.after
    known = view.launched[one] & view.launched[two]
    one, two = one[known], two[known]
    together = t.lane[view.launch_row[one]] == t.lane[view.launch_row[two]]
    return Spans.of(view.launch_start[one[together]], view.launch_start[two[together]])
