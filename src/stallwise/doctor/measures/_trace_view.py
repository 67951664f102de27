"""What several measures need from one timeline, computed once: device work, who launched it, from which operator."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._operators import NOBODY, OperatorTree
from stallwise.doctor.measures._spans import Spans
from stallwise.doctor.measures._vocabulary import Host, range_meaning, runtime_meaning
from stallwise.evidence.timeline import GPU_KINDS, NO_ID, Kind, Timeline
from stallwise.physics.specs.hardware import Gpu, find_gpu

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class TraceView:
    """Columns about the device work of one GPU; index i is the i-th piece of work in order of start."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        rows = timeline.rows(*GPU_KINDS)
        self.work = _of_busiest_device(timeline, rows)
        self.start: Floats = timeline.start_s[self.work]
        self.duration: Floats = timeline.duration_s[self.work]
        self.end: Floats = self.start + self.duration
        self.is_kernel: Bools = timeline.kind[self.work] == Kind.KERNEL
        self._ranges: dict[tuple[Host, tuple[Kind, ...]], Spans] = {}
        self._meant: dict[tuple[Kind, ...], tuple[NDArray[np.intp], NDArray[np.int64]]] = {}
        self._calls: dict[Host, NDArray[np.intp]] = {}
        self._call_spans: dict[Host, Spans] = {}

    def __len__(self) -> int:
        return len(self.work)

    @cached_property
    def gpu(self) -> Gpu | None:
        """The card from the catalogue, when the trace names one."""
        for device in self.timeline.devices:
            if device.name:
                return find_gpu(device.name, memory_bytes=device.memory_bytes or None)
        return None

    @cached_property
    def gpu_name(self) -> str:
        """The card in the trace's own words."""
        return next((d.name for d in self.timeline.devices if d.name), "")

    @cached_property
    def runtime_rows(self) -> NDArray[np.intp]:
        """Calls into the driver."""
        return self.timeline.rows(Kind.RUNTIME)

    @cached_property
    def runtime_flags(self) -> NDArray[np.int64]:
        """What each driver call does, as Host flags."""
        return self._meaning(runtime_meaning, self.runtime_rows)[self.timeline.name[self.runtime_rows]]

    @cached_property
    def range_flags(self) -> NDArray[np.int64]:
        """What each name means when it is a range, an operator or a Python frame; by name code."""
        return self._meaning(range_meaning, self.timeline.rows(Kind.ANNOTATION, Kind.CPU_OP, Kind.PYTHON))

    def _meaning(self, of: Callable[[str], Host], rows: NDArray[np.intp]) -> NDArray[np.int64]:
        """By name code; only names that these rows use are looked at."""
        found = np.zeros(len(self.timeline.names), np.int64)
        used = self.timeline.codes(rows)
        found[used] = [int(of(self.timeline.names[code])) for code in used]
        return found

    @cached_property
    def launch_row(self) -> NDArray[np.intp]:
        """Row of the call that launched each piece of device work; NOBODY where the trace does not hold it."""
        t = self.timeline
        calls = self.runtime_rows
        ids = t.correlation[calls]
        calls, ids = calls[ids != NO_ID], ids[ids != NO_ID]
        order = np.argsort(ids, kind="stable")
        calls, ids = calls[order], ids[order]
        wanted = t.correlation[self.work]
        if not len(ids):
            return np.full(len(self), NOBODY, np.intp)
        place = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
        return np.where((ids[place] == wanted) & (wanted != NO_ID), calls[place], NOBODY)

    @cached_property
    def launched(self) -> Bools:
        """Work whose launch is in the trace."""
        return self.launch_row >= 0

    @cached_property
    def launch_start(self) -> Floats:
        """When the launching call began; the start of the work where that is unknown."""
        return np.where(self.launched, self.timeline.start_s[np.maximum(self.launch_row, 0)], self.start)

    @cached_property
    def queued_at(self) -> Floats:
        """When the launching call had handed the work over: its end, or the start of the work if that came first."""
        row = np.maximum(self.launch_row, 0)
        end = self.timeline.start_s[row] + self.timeline.duration_s[row]
        return np.where(self.launched, np.minimum(end, self.start), self.start)

    @cached_property
    def tree(self) -> OperatorTree:
        """The operators of all threads."""
        return OperatorTree.of(self.timeline, self.timeline.rows(Kind.CPU_OP))

    @cached_property
    def operator(self) -> NDArray[np.int64]:
        """The innermost operator behind each piece of device work, as a position in the tree."""
        t, tree = self.timeline, self.tree
        if not len(tree):
            return np.full(len(self), NOBODY, np.int64)
        lane = t.lane[np.maximum(self.launch_row, 0)]
        by_time = np.where(self.launched, tree.at(lane, self.launch_start), NOBODY)
        ids = t.external[tree.row]
        order = np.argsort(ids, kind="stable")
        wanted = t.external[self.work]
        place = np.minimum(np.searchsorted(ids[order], wanted), len(ids) - 1)
        by_id = np.where((ids[order][place] == wanted) & (wanted != NO_ID), order[place], NOBODY)
        return np.where(by_time >= 0, by_time, by_id)

    @cached_property
    def working_lanes(self) -> Bools:
        """By lane: host threads that launch device work, or that hold named ranges when nothing is launched."""
        t = self.timeline
        found = np.zeros(len(t.lanes), bool)
        if self.launched.any():
            found[np.unique(t.lane[self.launch_row[self.launched]])] = True
        rows = t.rows(Kind.ANNOTATION)
        found[np.unique(t.lane[rows])] = True
        on_device = np.array([lane.on_device for lane in t.lanes], bool)
        working: Bools = found & ~on_device
        return working

    def ranges(self, meaning: Host, *kinds: Kind) -> Spans:
        """When the working threads were inside ranges, operators or frames of this meaning."""
        found = self._ranges.get((meaning, kinds))
        if found is None:
            found = self._ranges[meaning, kinds] = self._found_ranges(meaning, kinds)
        return found

    def _found_ranges(self, meaning: Host, kinds: tuple[Kind, ...]) -> Spans:
        t = self.timeline
        if kinds not in self._meant:  # few of many rows mean anything
            rows = t.rows(*(kinds or (Kind.ANNOTATION, Kind.CPU_OP, Kind.PYTHON)))
            rows = rows[(self.range_flags != 0)[t.name[rows]]]
            rows = rows[self.working_lanes[t.lane[rows]]]
            self._meant[kinds] = rows, self.range_flags[t.name[rows]]
        rows, flags = self._meant[kinds]
        rows = rows[(flags & int(meaning)) != 0]
        return Spans.of(t.start_s[rows], t.end_s[rows])

    def calls(self, meaning: Host) -> NDArray[np.intp]:
        """Rows of driver calls of this meaning, not to be written to."""
        if meaning not in self._calls:
            self._calls[meaning] = self.runtime_rows[(self.runtime_flags & int(meaning)) != 0]
        return self._calls[meaning]

    def call_spans(self, meaning: Host) -> Spans:
        """When some thread was inside such a call."""
        if meaning not in self._call_spans:
            rows = self.calls(meaning)
            self._call_spans[meaning] = Spans.of(self.timeline.start_s[rows], self.timeline.end_s[rows])
        return self._call_spans[meaning]

    @cached_property
    def host_edges(self) -> Floats:
        """When working threads enter or leave an operator or a driver call, in order."""
        t = self.timeline
        rows = t.rows(Kind.CPU_OP, Kind.RUNTIME)
        rows = rows[self.working_lanes[t.lane[rows]]]
        return np.sort(np.concatenate((t.start_s[rows], t.end_s[rows])))


def _of_busiest_device(timeline: Timeline, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """A process may drive several GPUs; one is judged: that with most work."""
    if not len(rows):
        return rows
    names = [lane.process if lane.on_device else "" for lane in timeline.lanes]
    codes = {name: i for i, name in enumerate(dict.fromkeys(names))}
    if len(codes) <= 2:
        return rows
    device = np.array([codes[name] for name in names])[timeline.lane[rows]]
    busy = np.bincount(device, weights=timeline.duration_s[rows], minlength=len(codes))
    mine: NDArray[np.intp] = rows[device == int(np.argmax(busy))]
    return mine


_last: list[TraceView] = []


def view_of(timeline: Timeline) -> TraceView:
    """The view of this timeline; kept for the next measure that asks, and for no longer than the next timeline."""
    if not _last or _last[0].timeline is not timeline:
        _last[:] = [TraceView(timeline)]
    return _last[0]


def forget() -> None:
    """Lets go of the timeline once all measures are done."""
    _last.clear()
