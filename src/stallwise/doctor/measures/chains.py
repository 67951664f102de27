"""Chains of pointwise kernels: what fusing them would save.

A chain of n kernels reads and writes its tensors n times; fused, it does so about once. So the saving of a chain is its
time less that of its longest member. Chains are found in launch order, since that is what a compiler sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._score_traffic import score_traffic
from stallwise.doctor.measures._step_index import StepIndex, step_index
from stallwise.doctor.measures._vocabulary import Work
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Timeline

FUSIBLE = (Work.ELEMENTWISE, Work.CAST, Work.LAYOUT, Work.NORM, Work.LOSS, Work.SOFTMAX, Work.REDUCTION)
CERTAIN = 0.5  # of the saving: reductions, views and graph breaks keep some chains apart


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Saving, weighted chain length, and the operators behind it."""
    index = step_index(timeline)
    if not len(index.view):
        return
    order, fusible = fusible_in_order(index)
    saving, length, alone = chain_saving(fusible, index.view.duration[order])
    # A lone pointwise kernel between two products can still go into one of them, at best for half of its traffic.
    high = saving + 0.5 * alone
    yield step_fact(
        index, catalog.FUSION_SAVING, saving / index.steps, low=CERTAIN * high / index.steps, high=high / index.steps
    )
    yield step_fact(index, catalog.CHAIN_LENGTH, length)
    yield step_fact(index, catalog.CHAIN_OPERATORS, _operators(index, order[fusible]))


def fusible_in_order(index: StepIndex) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Kernels in order of launch, and which of them a compiler could put into one with their neighbours."""
    kernels = np.flatnonzero(index.inside & index.view.is_kernel)
    order = kernels[np.argsort(index.view.launch_start[kernels], kind="stable")]
    work = index.purposes.work[order]
    updates = index.purposes.in_optimizer | index.walked
    return order, np.isin(work, FUSIBLE) & ~score_traffic(index)[order] & ~updates[order]


def chain_saving(fusible: NDArray[np.bool_], duration: NDArray[np.float64]) -> tuple[float, float, float]:
    """Seconds saved in chains of two or more, their time-weighted length, and the seconds of lone kernels."""
    if not fusible.any():
        return 0.0, 0.0, 0.0
    first = fusible & ~np.concatenate(([False], fusible[:-1]))
    chain = np.cumsum(first)[fusible] - 1
    seconds = duration[fusible]
    total = np.bincount(chain, weights=seconds)
    count = np.bincount(chain)
    longest = np.zeros(len(total))
    np.maximum.at(longest, chain, seconds)
    alone = count == 1
    length = float(np.average(count, weights=total)) if total.sum() else 0.0
    return float((total - longest)[~alone].sum()), length, float(total[alone].sum())


def _operators(index: StepIndex, members: NDArray[np.intp]) -> str:
    t, view = index.timeline, index.view
    at = view.operator[members]
    names: Counter[str] = Counter()
    if len(view.tree):
        codes = t.name[view.tree.row[at[at >= 0]]]
        seconds = np.bincount(codes, weights=view.duration[members[at >= 0]], minlength=len(t.names))
        for code in np.argsort(-seconds)[:4]:
            if seconds[code] > 0:
                names[t.names[code]] = 1
    return ", ".join(name.removeprefix("aten::") for name in names)
