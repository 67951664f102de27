"""The changes that can be tried on a trace: which host time, waits and device time each of them takes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._dependencies import graph_of_view
from stallwise.doctor.measures._idle import QUIET_S
from stallwise.doctor.measures._spans import NOTHING, Spans
from stallwise.doctor.measures._step_index import StepIndex, step_index
from stallwise.doctor.measures._vocabulary import Host, Work, work_of_operator
from stallwise.doctor.measures._walks import MANY_UPDATES
from stallwise.doctor.measures._warm_up import first_launches
from stallwise.evidence.timeline import Kind, Timeline
from stallwise.physics.sim.replay.change import Change, play
from stallwise.physics.sim.replay.graph import NOTHING as NOBODY
from stallwise.physics.sim.replay.graph import Graph
from stallwise.physics.sim.replay.retime import Retimed, boundaries

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MOST_WORK = 20_000  # pieces of work replayed for a change: whole steps of a long trace, as many as fit
GRAPH_DRIVERS = ("cuda", "cu", "hip")  # those that can replay launches as a graph
GRAPH_LAG_S = 1.0e-6  # between kernels of a replayed CUDA graph: 0.6 to 1.1 us on the H200
STAGED = 0.05  # of a copy's time stays when it runs ahead of its use: 0.87 to 1.03 of exposed copies went on the H200


@dataclass(eq=False)
class Replays:
    """The steps of one timeline, ready to be played with changes."""

    index: StepIndex
    _played: dict[tuple[Change, float], Retimed] = field(default_factory=dict)

    @cached_property
    def _whole(self) -> tuple[Graph, NDArray[np.intp]]:
        return graph_of_view(self.index.view)

    @cached_property
    def steps(self) -> int:
        """Steps that are played: a prefix of the trace."""
        return self._whole[0].steps_within(self.index.windows.host, MOST_WORK)

    @cached_property
    def graph(self) -> Graph:
        """The graph of those steps."""
        graph, _ = self._whole
        return graph if self.steps >= len(self.index.windows) else graph.until(self.index.windows.host[self.steps])

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """For each piece of work of the graph its position in the view."""
        return self._whole[1][: len(self.graph)]

    @cached_property
    def unchanged_s(self) -> float:
        """The mean step of what is played, with no change."""
        return self.step_s(Change())

    def step_s(self, change: Change, share: float = 1.0) -> float:
        """The mean step after a change."""
        played = self.played(change, share)
        lasts = self.graph.duration_s
        if change.work is not None:
            lasts = lasts * (1.0 - share * (1.0 - change.work))
        marks = self.index.windows.host[: self.steps + 1]
        return float(np.diff(boundaries(self.graph, played, played.start_s + lasts, marks)).mean())

    def played(self, change: Change, share: float = 1.0) -> Retimed:
        """The steps after a change; each is played once."""
        found = self._played.get((change, share))
        if found is None:
            found = self._played[change, share] = play(self.graph, change, share)
        return found

    def gain_s(self, change: Change, share: float = 1.0) -> float:
        """What the change wins in a mean step."""
        return self.unchanged_s - self.step_s(change, share)

    @cached_property
    def launching(self) -> Spans:
        """When the host runs operators and calls that launch, and does nothing else."""
        return _launching_spans(self.index)

    @cached_property
    def gains(self) -> dict[str, tuple[Change, float]]:
        """Each change that applies here, and what it wins."""
        made = {name: make(self) for name, make in CHANGES.items()}
        return {name: (change, self.gain_s(change)) for name, change in made.items() if change is not None}

    def waits_in(self, spans: Spans) -> Bools:
        """Waits of the graph that begin inside."""
        return spans.contains(self.graph.wait_s + 1e-9) | spans.contains(self.graph.wait_s)


def _host(spans: Spans, waits: Bools | None = None, work: Floats | None = None) -> Change:
    return Change(spans.start, spans.end, waits, work)


def no_input_wait(r: Replays) -> Change | None:
    """The batch is there when it is asked for."""
    spans = r.index.view.ranges(Host.LOADER)
    if not len(spans):
        return None
    return _host(spans, r.waits_in(spans) | (r.graph.wait_for == NOBODY))


def no_sync(r: Replays) -> Change | None:
    """Nobody reads a value of the device, or stops for it."""
    view, t = r.index.view, r.index.timeline
    rows = view.calls(Host.SYNC)
    if not len(rows):
        return None
    calls = Spans.of(t.start_s[rows], t.end_s[rows])
    readers = np.array([n in READERS for n in t.names], bool)
    asked = t.rows(Kind.CPU_OP)
    asked = asked[readers[t.name[asked]]]
    spans = calls | Spans.of(t.start_s[asked], t.end_s[asked])
    made, left = _made_for_reading(r, asked)
    return _host(spans | made, r.waits_in(spans), left)


def _made_for_reading(r: Replays, asked: NDArray[np.intp]) -> tuple[Spans, Floats]:
    """Reductions right before a read: one number comes out of many, and nobody else takes it. They go with the read."""
    view, t = r.index.view, r.index.timeline
    tree, left = view.tree, np.ones(len(r.order))
    if not len(tree) or not len(asked):
        return NOTHING, left
    roots = np.flatnonzero(tree.parent < 0)
    lane = t.lane[tree.row[roots]]
    place = np.searchsorted(tree.key_start[roots], t.start_s[asked] + tree.lane_offset_s[t.lane[asked]]) - 1
    before = roots[np.maximum(place, 0)]
    same = (
        (place >= 0) & (lane[np.maximum(place, 0)] == t.lane[asked]) & (t.end_s[tree.row[before]] <= t.start_s[asked])
    )
    before = np.unique(before[same])
    work = np.array([work_of_operator(t.names[code]) == Work.REDUCTION for code in t.name[tree.row[before]]], bool)
    before = before[work]
    mine = np.zeros(len(tree), bool)
    mine[before] = True
    gone = (view.operator >= 0) & tree.inherited(mine)[np.maximum(view.operator, 0)]
    rows = tree.row[before]
    return Spans.of(t.start_s[rows], t.end_s[rows]), np.where(gone[r.order], 0.0, left)


READERS = ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero")


def graphs(r: Replays) -> Change | None:
    """Launches are replayed as graphs: the host's time for them goes."""
    view, t = r.index.view, r.index.timeline
    drivers = {t.names[code] for code in t.codes(view.launch_row[view.launched])}
    if not any(name.startswith(GRAPH_DRIVERS) for name in drivers):
        return None
    return Change(r.launching.start, r.launching.end, longest_lag_s=GRAPH_LAG_S)


def _launching_spans(index: StepIndex) -> Spans:
    view = index.view
    kept = NOTHING
    for meaning in (Host.LOADER, Host.CHECKPOINT, Host.GC, Host.COMPILE):
        kept = kept | view.ranges(meaning)
    for call in (Host.SYNC, Host.ALLOC, Host.COPY_CALL):
        kept = kept | view.call_spans(call)
    edges = view.host_edges
    quiet = np.diff(edges) >= QUIET_S
    kept = kept | Spans(edges[:-1][quiet], edges[1:][quiet])
    return Spans.of(edges[:1], edges[-1:]) - kept


def no_allocation(r: Replays) -> Change | None:
    """Memory is kept: no calls that map, free or wait."""
    # What is set up once is gone in the next step anyhow.
    spans = r.index.view.call_spans(Host.ALLOC) - first_launches(r.index.view)
    return _host(spans, r.waits_in(spans)) if len(spans) else None


def copies_ahead(r: Replays) -> Change | None:
    """Batches cross the bus from pinned memory, ahead of their use."""
    index, view = r.index, r.index.view
    sent = index.purposes.crosses_bus & ~index.purposes.to_host
    if not sent.any():
        return None
    spans = view.call_spans(Host.COPY_CALL) | view.ranges(Host.TRANSFER, Kind.ANNOTATION)
    spans = spans | Spans.of(*_operators_around(r, sent))
    # From pageable memory the host also stops until the batch is across; from pinned memory nobody does.
    for_batch = np.isin(r.graph.wait_for, np.flatnonzero(sent[r.order]))
    calls = view.calls(Host.SYNC)
    stops = calls[np.isin(index.timeline.start_s[calls], r.graph.wait_s[for_batch])]
    spans = spans | Spans.of(index.timeline.start_s[stops], index.timeline.end_s[stops])
    left = np.where(sent[r.order], STAGED, 1.0)
    return _host(spans, r.waits_in(spans) | for_batch, left)


def _operators_around(r: Replays, which: Bools) -> tuple[Floats, Floats]:
    """The calls that handed this work over, whole."""
    view, t = r.index.view, r.index.timeline
    rows = view.launch_row[which & view.launched]
    return t.start_s[rows], t.end_s[rows]


def no_save(r: Replays) -> Change | None:
    """Checkpoints are written by somebody else."""
    spans = r.index.saves | r.index.view.ranges(Host.CHECKPOINT)
    if not len(spans):
        return None
    view = r.index.view
    out = r.index.purposes.to_host[r.order] & spans.contains(view.start[r.order])
    return _host(spans, r.waits_in(spans), np.where(out, STAGED, 1.0))


def no_host_work(r: Replays) -> Change | None:
    """The host does nothing between its operators."""
    from stallwise.doctor.measures._idle import Idle

    spans = r.index.idle.get(Idle.SILENT)
    return _host(spans) if len(spans) else None


def fused_optimizer(r: Replays) -> Change | None:
    """Parameters are updated in a few launches: by the optimizer, and by loops beside it."""
    index, view = r.index, r.index.view
    mine = index.purposes.in_optimizer & view.is_kernel
    spans = index.walks
    if float(mine.sum()) / index.steps >= MANY_UPDATES:
        spans = spans | view.ranges(Host.OPTIMIZER)
    return Change(spans.start, spans.end, r.waits_in(spans)) if len(spans) else None


CHANGES: dict[str, Callable[[Replays], Change | None]] = {
    "no-input-wait": no_input_wait,
    "no-sync": no_sync,
    "graphs": graphs,
    "no-allocation": no_allocation,
    "fused-optimizer": fused_optimizer,
    "copies-ahead": copies_ahead,
    "no-save": no_save,
    "no-host-work": no_host_work,
}


_last: list[Replays] = []


def replays_of(index: StepIndex) -> Replays:
    """Built once for a book."""
    if not _last or _last[0].index is not index:
        _last[:] = [Replays(index)]
    return _last[0]


def playable(timeline: Timeline) -> Replays | None:
    """The replays of its steps; None where nothing was launched or a step takes no time."""
    index = step_index(timeline)
    if not len(index.view) or not index.view.launched.any():
        return None
    replays = replays_of(index)
    return replays if replays.unchanged_s > 0 else None
