"""Where steps begin and end, on the host and on the device.

The host runs ahead of the device, so a step's work begins on the device later than the host's own mark. The device's
border is the moment at which everything launched before the mark has drained (or the mark itself, when the device was
idle by then). Between two borders lies exactly one step's work and one step's waiting.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._trace_view import TraceView
from stallwise.doctor.measures._vocabulary import Host, names_a_step, names_an_iteration
from stallwise.evidence.timeline import Kind

Floats = NDArray[np.float64]

MIN_REPEATS = 3  # fewer repetitions of a range or of a kernel sequence prove no period
SAME_SEQUENCE = 0.9  # of kernels must match one period later
COVERS = 0.5  # a repeated range stands for the steps only if it covers most of the device's time


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Borders in time; step i lies between border i and i+1."""

    host: Floats  # the host's marks, one more than steps
    device: Floats  # the same on the device
    unit: str  # "step", "iteration" or "window"
    how: str  # where the borders come from, in words
    labels: tuple[str, ...]  # a name per step, for sources

    def __len__(self) -> int:
        return len(self.device) - 1

    @property
    def where(self) -> str:
        """The steps as a place in the file."""
        if not self.labels:
            return self.how
        first, last = self.labels[0], self.labels[-1]
        number = re.search(r"\d+$", last)
        return first if first == last else f"{first}-{number[0] if number else last}"


def find_windows(view: TraceView) -> Windows:
    """Steps by the profiler's marks, the user's, the optimizer's, or repetition, if they hold most of the work; else one window."""
    for find in (_marked_steps, _engine_iterations, _optimizer_steps, _repeated_range, _repeated_kernels):
        found = find(view)
        if found is not None and _holds_most(view, found):
            return found
    return _one_window(view)


def _holds_most(view: TraceView, found: Windows) -> bool:
    """Layers, tokens or a warm-up that repeat inside a longer recording are no steps of it: most kernel time lies elsewhere."""
    kernels = view.duration * view.is_kernel
    inside = (view.end > found.device[0]) & (view.start < found.device[-1])
    return float(kernels[inside].sum()) >= COVERS * float(kernels.sum())


def _rows(view: TraceView, wanted: list[bool]) -> NDArray[np.intp]:
    t = view.timeline
    rows = t.rows(Kind.ANNOTATION)
    rows = rows[np.array(wanted, bool)[t.name[rows]]] if len(rows) else rows
    # The same mark may be repeated on other threads or nested: the outermost on the busiest thread counts.
    if len(rows) > 1:
        lane = np.bincount(t.lane[rows], weights=t.duration_s[rows] + 1e-12).argmax()
        rows = rows[t.lane[rows] == lane]
        reach = np.maximum.accumulate(t.end_s[rows])
        rows = rows[np.concatenate(([True], t.start_s[rows][1:] >= reach[:-1] - 1e-6))]
    return rows


def _marked_steps(view: TraceView) -> Windows | None:
    return _from_ranges(view, [names_a_step(n) for n in view.timeline.names], "step", "marked steps")


def _engine_iterations(view: TraceView) -> Windows | None:
    return _from_ranges(view, [names_an_iteration(n) for n in view.timeline.names], "iteration", "engine iterations")


def _from_ranges(view: TraceView, wanted: list[bool], unit: str, how: str) -> Windows | None:
    rows = _rows(view, wanted)
    if not len(rows):
        return None
    t = view.timeline
    marks = np.concatenate((t.start_s[rows], [t.end_s[rows[-1]]]))
    return _windows(view, marks, unit, how, tuple(t.text(int(r)) for r in rows))


def _optimizer_steps(view: TraceView) -> Windows | None:
    """Each optimizer step ends a training step."""
    t = view.timeline
    flags = view.range_flags
    rows = _rows(view, [bool(flags[i] & int(Host.OPTIMIZER)) for i in range(len(t.names))])
    if len(rows) < MIN_REPEATS:
        return None
    ends = t.end_s[rows]
    begin = float(t.start_s[np.flatnonzero(~np.isin(t.kind, [int(Kind.OTHER)]))[0]])
    usual = float(np.median(np.diff(ends)))
    # The first step counts only if it is whole: what precedes the first optimizer step is about as long as the rest.
    marks = np.concatenate(([begin], ends)) if 0.5 * usual <= ends[0] - begin <= 2 * usual else ends
    # What follows the last optimizer step is usually a cut-off step; if it lasts much longer, it is part of the loop.
    finish = float(t.end_s.max())
    if finish - marks[-1] > 1.5 * usual:
        marks = np.concatenate((marks[:-1], [finish]))
    return _windows(view, marks, "step", "optimizer steps", ())


def _repeated_range(view: TraceView) -> Windows | None:
    t = view.timeline
    rows = t.rows(Kind.ANNOTATION)
    if not len(rows) or not len(view):
        return None
    stems = [re.sub(r"\d+", "#", name) for name in t.names]
    code_of = {stem: i for i, stem in enumerate(dict.fromkeys(stems))}
    stem_code = np.array([code_of[s] for s in stems])[t.name[rows]]
    count = np.bincount(stem_code, minlength=len(code_of))
    length = np.bincount(stem_code, weights=t.duration_s[rows], minlength=len(code_of))
    span = float(view.end.max() - view.start.min())
    best = int(np.argmax(np.where((count >= MIN_REPEATS) & (length <= 1.05 * span), length, 0.0)))
    if count[best] < MIN_REPEATS or length[best] < COVERS * span:
        return None
    return _from_ranges(view, [code_of[s] == best for s in stems], "step", "a repeated range")


def _repeated_kernels(view: TraceView) -> Windows | None:
    """The kernel sequence repeats: the rarest kernel that recurs at an even distance marks the period."""
    name = view.timeline.name[view.work]
    if len(name) < 4 * MIN_REPEATS:
        return None
    order = np.argsort(view.launch_start, kind="stable")
    name = name[order]
    count = np.bincount(name)
    for code in np.argsort(np.where(count >= MIN_REPEATS, count, len(name) + 1))[:8]:
        if count[code] < MIN_REPEATS:
            continue
        at = np.flatnonzero(name == code)
        period = int(np.median(np.diff(at)))
        if period < 4 or np.any(np.abs(np.diff(at) - period) > 0.02 * period):
            continue
        if np.mean(name[:-period] == name[period:]) < SAME_SEQUENCE:
            continue
        marks = view.launch_start[order][at]
        # The sequence before the first mark is the tail of a step; the one after the last may be cut short.
        return _windows(view, marks, "step", "a repeating kernel sequence", ())
    return None


def _one_window(view: TraceView) -> Windows:
    t = view.timeline
    if len(view):
        first = float(min(view.start.min(), view.launch_start.min()))
        marks = np.array([first, float(view.end.max())])
    elif len(t):
        marks = np.array([float(t.start_s[0]), float(t.end_s.max())])
    else:
        marks = np.array([0.0, 0.0])
    return Windows(marks, marks, "window", "the whole trace", ())


def _windows(view: TraceView, marks: Floats, unit: str, how: str, labels: tuple[str, ...]) -> Windows | None:
    device = device_boundaries(view, marks)
    if unit == "iteration" and len(view):
        # Engines prepare an iteration while the device still works on the last one. A recording cut out of a running
        # server does not hold that work, so nothing is said of the time before its first kernel.
        device[0] = max(device[0], float(view.start.min()))
    if device[-1] <= device[0]:
        return None
    return Windows(marks, device, unit, how, labels)


def device_boundaries(view: TraceView, marks: Floats) -> Floats:
    """When the work launched before each mark has drained, but never before the mark."""
    if not len(view) or not view.launched.any():
        return marks.copy()
    # Work whose launch is missing at the start of a trace was launched before recording began.
    first = float(view.start[view.launched].min())
    since = np.where(~view.launched & (view.start < first), -np.inf, view.launch_start)
    order = np.argsort(since, kind="stable")
    drained = np.maximum.accumulate(view.end[order])
    before = np.searchsorted(since[order], marks, side="left")
    return np.maximum(marks, np.where(before > 0, drained[np.maximum(before - 1, 0)], marks))
