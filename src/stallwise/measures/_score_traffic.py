"""Attention that writes its scores: whatever runs between the two batched products around a softmax.

Told by order and operator, not by size: scores = bmm(q, k); scale, mask, softmax, dropout, casts; out = bmm(scores, v),
and the same in the backward pass around the softmax's gradient.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stallwise.measures._step_book import StepBook
from stallwise.measures._vocabulary import Work

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


def _near_softmax(book: StepBook) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.bool_]]:
    """Work in launch order; which of it lies between a softmax and its products; which are those products."""
    view, t = book.view, book.timeline
    order = np.flatnonzero(book.inside)
    order = order[np.argsort(view.launch_start[order], kind="stable")]
    nothing = np.zeros(len(order), bool)
    if not len(view.tree):
        return order, nothing, nothing
    operator = view.operator[order]
    code = np.where(operator >= 0, t.name[view.tree.row[np.maximum(operator, 0)]], -1)
    softmax = np.isin(code, [i for i, n in enumerate(t.names) if n in _SOFTMAX])
    product = np.isin(code, [i for i, n in enumerate(t.names) if n in _BATCHED])
    if not softmax.any() or not product.any():
        return order, nothing, nothing
    where = np.flatnonzero(product)
    edge = np.zeros(len(order) + 1, np.int64)
    chosen = nothing.copy()
    at = np.flatnonzero(softmax)
    place = np.searchsorted(where, at)
    has = (place > 0) & (place < len(where))
    at, place = at[has], place[has]
    before, after = where[place - 1], where[place]
    routing = np.isin(code, [i for i, n in enumerate(t.names) if n in _ROUTING])
    breaks = (np.isin(book.purposes.work[order], _BREAKS) & ~product) | routing
    passed = np.concatenate(([0], np.cumsum(breaks)))
    near = (at - before <= FARTHEST) & (after - at <= FARTHEST) & (passed[after] == passed[before + 1])
    np.add.at(edge, before[near] + 1, 1)
    np.add.at(edge, after[near], -1)
    chosen[before[near]] = chosen[after[near]] = True
    # In the backward pass the gradients of values and keys are products of the scores too, right beside.
    apart = (np.diff(where) > BESIDE) | (passed[where[1:]] != passed[where[:-1] + 1])
    run = np.concatenate(([0], np.cumsum(apart)))
    chosen[where] = np.isin(run, run[chosen[where]])
    return order, (np.cumsum(edge[:-1]) > 0) & ~product, chosen


def score_traffic(book: StepBook) -> NDArray[np.bool_]:
    """By device work: kernels and copies that read or write materialised scores."""
    order, between, _ = _near_softmax(book)
    found = np.zeros(len(book.view), bool)
    moves = book.purposes.work[order]
    found[order] = between & (moves != Work.GEMM) & (moves != Work.COMMUNICATION)
    return found


def score_products(book: StepBook) -> NDArray[np.bool_]:
    """By device work: the batched products next to those scores."""
    order, _, products = _near_softmax(book)
    found = np.zeros(len(book.view), bool)
    found[order] = products
    return found
