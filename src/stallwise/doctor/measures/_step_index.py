"""One timeline's steps, device states and idle reasons, computed once and shared by the measures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._idle import Idle, IdleTimes, idle_times
from stallwise.doctor.measures._purpose import Purposes, purposes_of
from stallwise.doctor.measures._saves import find_saves
from stallwise.doctor.measures._spans import NOTHING, Spans
from stallwise.doctor.measures._trace_view import TraceView, view_of
from stallwise.doctor.measures._walks import walks
from stallwise.doctor.measures._windows import Windows, find_windows
from stallwise.evidence.fact import Source
from stallwise.evidence.ledger import Category
from stallwise.evidence.timeline import Timeline

CATEGORY_OF_IDLE = {
    Idle.INPUT: Category.INPUT_WAIT,
    Idle.CHECKPOINT: Category.CHECKPOINT,
    Idle.COMPILE: Category.HOST_WAIT,
    Idle.PLAN: Category.HOST_WAIT,
    Idle.FIRST_LAUNCH: Category.WARM_UP,
    Idle.CAPTURE: Category.WARM_UP,
    Idle.CPU_WORK: Category.HOST_WAIT,
    Idle.GC: Category.HOST_WAIT,
    Idle.ALLOC: Category.HOST_WAIT,
    Idle.SYNC: Category.HOST_WAIT,
    Idle.SILENT: Category.HOST_WAIT,
    Idle.COPY_CALL: Category.COPY,
    Idle.LAUNCH: Category.LAUNCH_GAP,
    Idle.PROFILER: Category.OTHER,
    Idle.DISPATCH: Category.OTHER,
    Idle.UNRECORDED: Category.OTHER,
    Idle.UNKNOWN: Category.OTHER,
}


@dataclass(eq=False)
class StepIndex:
    """Everything about where the time of one rank went."""

    view: TraceView
    windows: Windows
    purposes: Purposes

    @property
    def timeline(self) -> Timeline:
        """The trace it is about."""
        return self.view.timeline

    @property
    def source(self) -> Source:
        """The steps as a place in the file."""
        return Source(self.timeline.source.file, self.windows.where)

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return len(self.windows)

    @property
    def whole(self) -> Spans:
        """From the first to the last border."""
        return Spans.of(self.windows.device[:1], self.windows.device[-1:])

    def per_step(self, spans: Spans) -> NDArray[np.float64]:
        """Seconds of this set in each step."""
        return np.diff(spans.measure_below(self.windows.device))

    def mean_s(self, spans: Spans) -> float:
        """Seconds of this set in a mean step."""
        return float(np.mean(self.per_step(spans)))

    @cached_property
    def inside(self) -> NDArray[np.bool_]:
        """Device work that starts between the borders."""
        lo, hi = self.windows.device[0], self.windows.device[-1]
        between: NDArray[np.bool_] = (self.view.start >= lo - 1e-9) & (self.view.start < hi)
        return between

    @cached_property
    def busy(self) -> Spans:
        """Any device work."""
        return Spans.of(self.view.start, self.view.end) & self.whole

    @cached_property
    def walks(self) -> Spans:
        """When the host updates tensors one by one outside the optimizer."""
        return walks(self.purposes)

    @cached_property
    def walked(self) -> NDArray[np.bool_]:
        """Kernels that such loops launch."""
        view = self.view
        return view.is_kernel & view.launched & self.walks.contains(view.launch_start)

    def work_spans(self, which: NDArray[np.bool_]) -> Spans:
        """When this part of the device work ran."""
        return Spans.of(self.view.start[which], self.view.end[which]) & self.whole

    @cached_property
    def compute(self) -> Spans:
        """Kernels other than communication, and copies inside the device."""
        p = self.purposes
        return self.work_spans(~p.communication & ~p.crosses_bus)

    @cached_property
    def exposed_communication(self) -> Spans:
        """Communication with nothing else to do."""
        return self.work_spans(self.purposes.communication) - self.compute

    @cached_property
    def exposed_copy(self) -> Spans:
        """Copies over the bus with nothing else to do."""
        return self.busy - self.compute - self.work_spans(self.purposes.communication)

    @cached_property
    def _idle_by_name(self) -> IdleTimes:
        return idle_times(self.view, self.windows, self.busy)

    @cached_property
    def saves(self) -> Spans:
        """Stretches in which the loop writes a checkpoint, told by their traffic."""
        times = self._idle_by_name
        return find_saves(self.view, self.windows, self.purposes, times.get(Idle.SILENT))

    @cached_property
    def idle(self) -> IdleTimes:
        """Idle time by reason, saves included."""
        times = self._idle_by_name
        if len(self.saves):
            taken = NOTHING
            for reason in (
                Idle.SILENT,
                Idle.SYNC,
                Idle.COPY_CALL,
                Idle.LAUNCH,
                Idle.CPU_WORK,
                Idle.DISPATCH,
                Idle.UNKNOWN,
                Idle.UNRECORDED,
            ):
                here = times.get(reason) & self.saves
                taken = taken | here
                times.spans[reason] = times.get(reason) - here
            times.spans[Idle.CHECKPOINT] = times.get(Idle.CHECKPOINT) | taken
        return times

    @cached_property
    def categories(self) -> dict[Category, Spans]:
        """A partition of the whole: every moment is in exactly one account."""
        copy = self.exposed_copy - self.saves
        found = {
            Category.COMPUTE: self.compute,
            Category.COMMUNICATION: self.exposed_communication,
            Category.COPY: copy,
            Category.CHECKPOINT: self.exposed_copy & self.saves,
        }
        for reason, spans in self.idle.spans.items():
            category = CATEGORY_OF_IDLE[reason]
            found[category] = found.get(category, NOTHING) | spans
        return found


_last: list[StepIndex] = []


def step_index(timeline: Timeline) -> StepIndex:
    """Computed once for a timeline."""
    if not _last or _last[0].timeline is not timeline:
        view = view_of(timeline)
        _last[:] = [StepIndex(view, find_windows(view), purposes_of(view))]
    return _last[0]


def forget() -> None:
    """Lets go of the timeline."""
    _last.clear()
