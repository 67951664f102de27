"""Changes of the device's own work: pointwise chains fused, matrix work in a narrower type."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stallwise.costs.precision import half_width_ratio, matrix_unit_ratio
from stallwise.measures._changes import Replays
from stallwise.measures._vocabulary import Work, matrix_precision
from stallwise.measures.chains import fusible_in_order
from stallwise.sim.replay.change import Change

MOVERS = (Work.ELEMENTWISE, Work.CAST, Work.LAYOUT, Work.NORM, Work.SOFTMAX, Work.LOSS, Work.FUSED, Work.REDUCTION)


def fused(r: Replays) -> Change | None:
    """Each chain of pointwise kernels moves its bytes once: it takes as long as its longest member."""
    order, fusible = fusible_in_order(r.book)
    if not fusible.any():
        return None
    first = fusible & ~np.concatenate(([False], fusible[:-1]))
    chain = np.cumsum(first)[fusible] - 1
    seconds = r.book.view.duration[order][fusible]
    total = np.bincount(chain, weights=seconds)
    longest = np.zeros(len(total))
    np.maximum.at(longest, chain, seconds)
    left = np.ones(len(r.book.view))
    left[order[fusible]] = (longest / np.maximum(total, 1e-12))[chain]
    return Change(work=left[r.order])


def sixteen_bits(r: Replays) -> Change | None:
    """fp32 and TF32 matrix work at the 16-bit rate, and half the bytes everywhere else but in the optimizer."""
    book, t = r.book, r.book.timeline
    work = book.purposes.work
    matrix = np.isin(work, (Work.GEMM, Work.CONV)) & book.view.is_kernel
    codes = t.name[book.view.work]
    arithmetic = {int(c): matrix_precision(t.names[c]) for c in np.unique(codes[matrix])}
    precision = np.array([arithmetic.get(int(c), "") for c in codes.tolist()], dtype=object)
    plain, wide = matrix & (precision == "fp32"), matrix & (precision == "tf32")
    ratio = matrix_unit_ratio(book.view.gpu)
    if not (plain.any() and ratio) and not wide.any():
        return None
    left = np.ones(len(book.view))
    if ratio is not None:
        left[plain] = 2.0 / (ratio[0] + ratio[1])
    half = half_width_ratio(book.view.gpu)
    left[wide] = 2.0 / (half[0] + half[1])
    share = float(book.view.duration[plain | wide].sum() / max(book.view.duration[matrix].sum(), 1e-12))
    left[np.isin(work, MOVERS) & ~book.purposes.in_optimizer] = 1.0 - 0.5 * share
    return Change(work=left[r.order])


DEVICE_CHANGES: dict[str, Callable[[Replays], Change | None]] = {"fuse": fused, "dtype": sixteen_bits}
