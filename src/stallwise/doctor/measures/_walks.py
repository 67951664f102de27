"""Updates of many tensors one after the other, outside the optimizer: running averages, target networks, gradients scaled by hand.

A loop over tensors shows as a long run of the same few operators with nothing else between them, which write in place. A loop over
time writes new tensors, and one over layers holds products.
"""

from __future__ import annotations

import numpy as np

from stallwise.doctor.measures._purpose import Purposes
from stallwise.doctor.measures._spans import NOTHING, Spans
from stallwise.doctor.measures._vocabulary import Host, Work, work_of_operator

MANY_UPDATES = 50  # in a run: one call that takes many tensors needs a handful of launches
FEW_NAMES = 6  # operators that a loop repeats
UPDATES = (Work.ELEMENTWISE, Work.COPY_OP)


def walks(purposes: Purposes) -> Spans:
    """When the host walks from tensor to tensor."""
    view, t = purposes.view, purposes.view.timeline
    tree = view.tree
    roots = np.flatnonzero((tree.parent < 0) & ~purposes.operator_in_backward)
    rows = tree.row[roots]
    rows = rows[view.working_lanes[t.lane[rows]] & ~view.ranges(Host.OPTIMIZER).contains(t.start_s[rows])]
    if len(rows) < MANY_UPDATES:
        return NOTHING
    simple, in_place = (np.zeros(len(t.names), bool) for _ in range(2))
    for code in t.codes(rows):
        simple[code] = work_of_operator(t.names[code]) in UPDATES
        in_place[code] = simple[code] and t.names[code].endswith("_")
    other = ~simple[t.name[rows]]
    other[1:] |= t.lane[rows][1:] != t.lane[rows][:-1]
    run = np.cumsum(other)
    updates = np.bincount(run, weights=in_place[t.name[rows]])
    launches = np.sort(view.launch_start[view.is_kernel & view.launched])
    found = []
    for number in np.flatnonzero(updates >= MANY_UPDATES):
        mine = rows[slice(*np.searchsorted(run, [number, number + 1]))]
        _, name, count = np.unique(t.name[mine], return_inverse=True, return_counts=True)
        loop = np.flatnonzero(in_place[t.name[mine]] & (count >= MANY_UPDATES // FEW_NAMES)[name])
        if len(loop) < MANY_UPDATES or len(np.unique(t.name[mine[loop[0] : loop[-1] + 1]])) > FEW_NAMES:
            continue
        begin, end = t.start_s[mine[loop[0]]], t.end_s[mine[loop[-1]]]
        # Tensors on the host, or on their way to it, launch nothing.
        if np.diff(np.searchsorted(launches, [begin, end]))[0] >= len(loop):
            found.append((begin, end))
    ends = np.array(found).reshape(-1, 2)
    return Spans.of(ends[:, 0], ends[:, 1]) - view.ranges(Host.OPTIMIZER)
