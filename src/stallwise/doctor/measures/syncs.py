"""Synchronisations: which ones left the device idle, and which only waited for queued work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._report import step_fact
from stallwise.doctor.measures._step_index import StepIndex, step_index
from stallwise.doctor.measures._vocabulary import Host
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Timeline


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Counts, the costliest caller, and the harmless rest."""
    index = step_index(timeline)
    if not len(index.view):
        return
    rows = index.view.calls(Host.SYNC)
    lo, hi = index.windows.host[0], index.windows.host[-1]
    rows = rows[(timeline.start_s[rows] >= lo) & (timeline.start_s[rows] < hi)]
    yield step_fact(index, catalog.SYNC_COUNT, len(rows) / index.steps)
    idle = index.idle
    harmless = np.maximum(idle.sync_wait_s - idle.sync_cost_s, 0.0).sum() if len(idle.sync_row) else 0.0
    yield step_fact(index, catalog.SYNC_HARMLESS, float(harmless) / index.steps)
    if len(rows):
        yield step_fact(index, catalog.SYNC_CALLER, _caller(index, rows))


def _caller(index: StepIndex, rows: np.ndarray) -> str:
    """The operator behind most of the cost; behind most calls where none cost anything."""
    t, tree = index.timeline, index.view.tree
    idle = index.idle
    weight = dict(zip(idle.sync_row.tolist(), idle.sync_cost_s.tolist(), strict=True))
    cost = np.array([weight.get(r, 0.0) for r in rows.tolist()]) + 1e-9
    at = tree.at(t.lane[rows], t.start_s[rows])
    names = [
        t.names[t.name[tree.row[a]]] if a >= 0 else t.text(int(r))
        for a, r in zip(at.tolist(), rows.tolist(), strict=True)
    ]
    total: dict[str, float] = {}
    for name, seconds in zip(names, cost.tolist(), strict=True):
        total[name] = total.get(name, 0.0) + seconds
    return max(total, key=total.__getitem__)
