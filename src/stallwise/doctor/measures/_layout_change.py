"""Convolutions with channels last in memory: what the library turned around before and after each of them goes.

Norms over a channel then read whole vectors as well. What they need at least is told by the pointwise kernel beside them, which
passes the same numbers at the memory's rate: a forward norm passes them three times, a backward one five times, the
pointwise kernel two to three times.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._changes import Replays
from stallwise.doctor.measures._vocabulary import Work
from stallwise.physics.sim.replay.change import Change

PASSES = 2.5  # of a pointwise kernel: one or two inputs, one output
PASSES_FORWARD, PASSES_BACKWARD = 3.0, 5.0
REACHED = 0.55  # of that rate by norms over the last dimension: 0.34 to 0.85 on the H200
BESIDE = 4  # kernels from a norm to its activation
_TURNED = re.compile(r"nchwToNhwc|nhwcToNchw", re.I)
_OVER_CHANNELS = re.compile(r"batch_norm|(^|::)bn_", re.I)


def channels_last(r: Replays) -> Change | None:
    """Pictures lie with their channels together: nothing is turned around, norms read whole vectors."""
    view = r.index.view
    turned = _named(r, _TURNED)
    if not turned.any():
        return None
    left = np.where(turned, 0.0, 1.0)
    kernels = np.flatnonzero(view.is_kernel)
    order = kernels[np.argsort(view.launch_start[kernels], kind="stable")]
    norm = _named(r, _OVER_CHANNELS)[order] & (r.index.purposes.work[order] == Work.NORM)
    pointwise = np.isin(r.index.purposes.work[order], (Work.ELEMENTWISE,))
    first = norm & ~np.concatenate(([False], norm[:-1]))
    last = norm & ~np.concatenate((norm[1:], [False]))
    for begin, end in zip(np.flatnonzero(first).tolist(), np.flatnonzero(last).tolist(), strict=True):
        backward = bool(r.index.purposes.in_backward[order[begin]])
        near = (
            np.arange(max(begin - BESIDE, 0), begin)
            if backward
            else np.arange(end + 1, min(end + 1 + BESIDE, len(order)))
        )
        near = near[pointwise[near]]
        if len(near):
            beside = order[near[-1] if backward else near[0]]
            passes = PASSES_BACKWARD if backward else PASSES_FORWARD
            least = passes / PASSES * float(view.duration[beside]) / REACHED
            members = order[begin : end + 1]
            left[members] = min(least / max(float(view.duration[members].sum()), 1e-12), 1.0)
    return Change(work=left[r.order])


def _named(r: Replays, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    t = r.index.timeline
    codes = t.name[r.index.view.work]
    hit = np.zeros(len(t.names), bool)
    used = t.codes(r.index.view.work)
    hit[used] = [pattern.search(t.names[c]) is not None for c in used]
    return hit[codes]
