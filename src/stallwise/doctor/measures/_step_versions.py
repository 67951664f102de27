"""The same step in other times: as it was traced, and replayed with a change. Events stay the same, so only their times are told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._changes import CHANGES, Replays, replays_of
from stallwise.doctor.measures._moved_events import moved
from stallwise.doctor.measures._purpose import Purposes
from stallwise.doctor.measures._step_index import StepIndex
from stallwise.doctor.measures._trace_view import TraceView
from stallwise.doctor.measures._windows import Windows
from stallwise.evidence.ledger import Category
from stallwise.evidence.timeline import Timeline
from stallwise.physics.sim.replay.change import Change
from stallwise.physics.sim.replay.retime import boundaries

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

MOST_CHANGES = 3  # replays that are shown, those that win most
WORTH_SHOWING = 0.01  # of the step: less is not seen
MOVES_SEEN = 0.01  # of the step: a replay that moves its end by less looks the same
CategorySpans = tuple[Floats, Floats, NDArray[np.int64]]  # start, end, number of the account
NO_CATEGORIES: CategorySpans = (np.empty(0), np.empty(0), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """One step in the times of one telling; zero is where the step begins on the device."""

    word: str
    meaning: str
    start_s: Floats  # of the asked rows
    end_s: Floats
    length_s: float
    categories: CategorySpans


def versions_of(index: StepIndex, at: int, rows: Rows) -> Iterator[Version]:
    """Every other telling of step `at`, for these rows of the timeline."""
    if index.timeline.recorded is not None:
        traced = _traced(index, at, rows)
        if traced is not None:
            yield traced
    if len(index.view) and index.view.launched.any():
        replays = replays_of(index)
        if at < replays.steps:
            yield from _changed(index, replays, at, rows)


def categories_between(index: StepIndex, lo: float, hi: float) -> CategorySpans:
    """Every moment in its account, in order of time."""
    starts, ends, codes = [np.empty(0)], [np.empty(0)], [np.empty(0, np.int64)]
    for number, category in enumerate(Category):
        spans = index.categories.get(category)
        if spans is None:
            continue
        keep = (spans.end > lo) & (spans.start < hi)
        starts.append(np.maximum(spans.start[keep], lo) - lo)
        ends.append(np.minimum(spans.end[keep], hi) - lo)
        codes.append(np.full(int(keep.sum()), number))
    start, end, code = np.concatenate(starts), np.concatenate(ends), np.concatenate(codes)
    order = np.argsort(start, kind="stable")
    return start[order], end[order], code[order]


def _traced(index: StepIndex, at: int, rows: Rows) -> Version | None:
    t, recorded = index.timeline, index.timeline.recorded
    assert recorded is not None
    if at + 1 >= len(recorded.boundary_s):
        return None
    lo, hi = float(recorded.boundary_s[at]), float(recorded.boundary_s[at + 1])
    length = float(index.windows.device[at + 1] - index.windows.device[at])
    if abs(hi - lo - length) < MOVES_SEEN * length:
        return None
    near = np.flatnonzero((recorded.end_s > lo - (hi - lo)) & (recorded.start_s < hi))
    categories = _categories(t, near, recorded.start_s[near], recorded.end_s[near], lo, hi, index.windows.unit)
    meaning = "the times in the file, with what recording costs"
    return Version("as traced", meaning, recorded.start_s[rows] - lo, recorded.end_s[rows] - lo, hi - lo, categories)


def _changed(index: StepIndex, replays: Replays, at: int, rows: Rows) -> Iterator[Version]:
    step_s, length_s = replays.unchanged_s, float(index.windows.device[at + 1] - index.windows.device[at])
    best = sorted(replays.gains.items(), key=lambda item: -item[1][1])[:MOST_CHANGES]
    for name, (change, won) in best:
        if won > WORTH_SHOWING * step_s:
            meaning = (CHANGES[name].__doc__ or "").strip().rstrip(".")
            version = _played(index, replays, at, rows, change, f"fixed ({name})", meaning)
            if abs(version.length_s - length_s) > MOVES_SEEN * length_s:  # it may win in other steps than this
                yield version


def _played(
    index: StepIndex, replays: Replays, at: int, rows: Rows, change: Change, word: str, meaning: str
) -> Version:
    t, view, graph = index.timeline, index.view, replays.graph
    played = replays.played(change)
    lasts = graph.duration_s if change.work is None else graph.duration_s * change.work
    marks = index.windows.host[: replays.steps + 1]
    lo, hi = boundaries(graph, played, played.start_s + lasts, marks)[at : at + 2].tolist()
    was_lo, was_hi = float(index.windows.device[at]), float(index.windows.device[at + 1])
    near = np.flatnonzero((t.end_s > was_lo - (was_hi - was_lo)) & (t.start_s < was_hi))
    wanted = np.union1d(near, rows)
    start, end = moved(t, wanted, graph, played, view.work[replays.order], lasts)
    mine = np.searchsorted(wanted, near)
    categories = _categories(t, near, start[mine], end[mine], lo, hi, index.windows.unit)
    asked = np.searchsorted(wanted, rows)
    return Version(word, meaning, start[asked] - lo, end[asked] - lo, hi - lo, categories)


def _categories(t: Timeline, rows: Rows, start: Floats, end: Floats, lo: float, hi: float, unit: str) -> CategorySpans:
    """The ledger along time of one step in other times: measured like any trace, on the step and the one before it."""
    order = np.lexsort((start - end, start))
    rows = rows[order]
    cut = replace(
        t,
        start_s=start[order],
        duration_s=np.maximum(end - start, 0.0)[order],
        kind=t.kind[rows],
        name=t.name[rows],
        lane=t.lane[rows],
        correlation=t.correlation[rows],
        external=t.external[rows],
        size_bytes=t.size_bytes[rows],
        detail=t.detail[rows],
        memory=None,
        recorded=None,
    )
    view = TraceView(cut)
    if not len(view) or not hi > lo:
        return NO_CATEGORIES
    edges = np.array([lo, hi])
    index = StepIndex(view, Windows(edges, edges, unit, "one step", ()), Purposes(view))
    return categories_between(index, lo, hi)
