"""Synchronisations: which ones left the device idle, and which only waited for queued work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._report import said
from stallwise.doctor.measures._step_book import StepBook, book_of
from stallwise.doctor.measures._vocabulary import Host
from stallwise.evidence.catalog import step as catalog
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Timeline


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Counts, the costliest caller, and the harmless rest."""
    book = book_of(timeline)
    if not len(book.view):
        return
    rows = book.view.calls(Host.SYNC)
    lo, hi = book.windows.host[0], book.windows.host[-1]
    rows = rows[(timeline.start_s[rows] >= lo) & (timeline.start_s[rows] < hi)]
    yield said(book, catalog.SYNC_COUNT, len(rows) / book.steps)
    idle = book.idle
    harmless = np.maximum(idle.sync_wait_s - idle.sync_cost_s, 0.0).sum() if len(idle.sync_row) else 0.0
    yield said(book, catalog.SYNC_HARMLESS, float(harmless) / book.steps)
    if len(rows):
        yield said(book, catalog.SYNC_CALLER, _caller(book, rows))


def _caller(book: StepBook, rows: np.ndarray) -> str:
    """The operator behind most of the cost; behind most calls where none cost anything."""
    t, tree = book.timeline, book.view.tree
    idle = book.idle
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
