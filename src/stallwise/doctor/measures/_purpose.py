"""What each piece of device work is for: by operator first, by kernel name where no operator is known."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._spans import Spans
from stallwise.doctor.measures._trace_view import TraceView
from stallwise.doctor.measures._vocabulary import Host, Work, work_of_kernel, work_of_operator
from stallwise.evidence.timeline import Kind

Bools = NDArray[np.bool_]
Works = NDArray[np.uint8]

_CLIMB = 6  # operators above the innermost that are asked when it says nothing
_CASTS = ("aten::_to_copy", "aten::to", "ToCopyBackward0")
_LAYOUTS = (
    "aten::contiguous",
    "aten::clone",
    "aten::cat",
    "aten::stack",
    "aten::reshape",
    "aten::permute",
    "aten::transpose",
    "aten::repeat",
    "aten::roll",
    "aten::flip",
    "aten::pad",
    "aten::constant_pad_nd",
    "aten::im2col",
    "aten::col2im",
)
_CAST_KERNELS = ("WithCast", "bfloat16_copy", "CastTensor", "float8_copy")


class Purposes:
    """Work codes and phases of the device work of a view."""

    def __init__(self, view: TraceView) -> None:
        self.view = view

    @cached_property
    def _operator_work(self) -> Works:
        """By position in the operator tree: the nearest operator's purpose, climbing where one says nothing."""
        view = self.view
        names = view.timeline.names
        # Names of non-operators are never looked up: annotations and Python frames may be in the hundreds of thousands.
        used = view.timeline.codes(view.tree.row)
        known = np.full(len(names), _SAYS_NOTHING, np.uint8)
        known[used] = [_code(work_of_operator(names[code])) for code in used]
        work = known[view.timeline.name[view.tree.row]]
        parent = view.tree.parent
        for _ in range(_CLIMB):
            silent = np.flatnonzero((work == _SAYS_NOTHING) & (parent >= 0))
            if not len(silent):
                break
            work[silent] = work[parent[silent]]
        return work

    @cached_property
    def work(self) -> Works:
        """What each piece of device work is for."""
        view, t = self.view, self.view.timeline
        code = t.name[view.work]
        used = t.codes(view.work)
        by_name = np.zeros(len(t.names), np.uint8)
        by_name[used] = [int(work_of_kernel(t.names[c])) for c in used]
        kernel = by_name[code]
        result = kernel.copy()
        if len(view.tree):
            has = view.operator >= 0
            operator = np.where(has, self._operator_work[np.maximum(view.operator, 0)], _SAYS_NOTHING)
            trusted = (operator != _SAYS_NOTHING) & (kernel != Work.COMMUNICATION) & (kernel != Work.FUSED)
            # A library that rearranges its input for a product of its own does not compute with that.
            trusted &= ~((kernel == Work.LAYOUT) & ((operator == Work.CONV) | (operator == Work.GEMM)))
            result = np.where(trusted, operator, kernel)
        result = np.where(view.is_kernel, result, int(Work.COPY)).astype(np.uint8)
        result[view.is_kernel & self.in_optimizer & (result != Work.COMMUNICATION)] = Work.OPTIMIZER
        return self._copies_resolved(result)

    def _copies_resolved(self, work: Works) -> Works:
        """A copy operator either changes the type or the layout; who called it tells, else the kernel's name."""
        view, t = self.view, self.view.timeline
        copies = np.flatnonzero((work == Work.COPY_OP) & view.is_kernel)
        if not len(copies):
            return work
        cast_name = np.array([any(w in n for w in _CAST_KERNELS) for n in t.names])[t.name[view.work[copies]]]
        answer = np.where(cast_name, int(Work.CAST), int(Work.LAYOUT))
        if len(view.tree):
            at = view.operator[copies]
            layout = self._under(_LAYOUTS)[np.maximum(at, 0)] & (at >= 0)
            cast = self._under(_CASTS)[np.maximum(at, 0)] & (at >= 0)
            answer = np.where(layout, int(Work.LAYOUT), np.where(cast, int(Work.CAST), answer))
        work[copies] = answer
        return work

    def _under(self, names: tuple[str, ...]) -> Bools:
        tree, t = self.view.tree, self.view.timeline
        wanted = np.isin(t.name[tree.row], [i for i, n in enumerate(t.names) if n in names])
        return tree.inherited(wanted)

    @cached_property
    def in_optimizer(self) -> Bools:
        """Launched inside the optimizer's step."""
        view = self.view
        return view.ranges(Host.OPTIMIZER).contains(view.launch_start) & view.launched

    @cached_property
    def backward(self) -> Spans:
        """When the autograd engine ran, by its own marks or the user's."""
        return self.view.ranges(Host.BACKWARD)

    @cached_property
    def operator_in_backward(self) -> Bools:
        """By position in the tree: called while the autograd engine ran."""
        t, rows = self.view.timeline, self.view.tree.row
        return self.backward.contains(t.start_s[rows]) | self._engine_lanes[t.lane[rows]]

    @cached_property
    def _engine_lanes(self) -> Bools:
        """By lane: threads of the autograd engine, where even what its marks do not cover is part of the backward pass."""
        view, t = self.view, self.view.timeline
        rows = t.rows(Kind.CPU_OP, Kind.ANNOTATION)
        engine = np.array(["autograd::engine" in n for n in t.names])[t.name[rows]]
        runs_engine = np.bincount(t.lane[rows[engine]], minlength=len(t.lanes)) > 0
        own_ranges = rows[~engine & (t.kind[rows] == Kind.ANNOTATION)]
        marked = np.bincount(t.lane[own_ranges], weights=t.duration_s[own_ranges], minlength=len(t.lanes))
        main = int(np.argmax(marked)) if marked.any() else -1
        lanes: Bools = runs_engine & view.working_lanes
        if main >= 0:
            lanes[main] = False
        return lanes

    @cached_property
    def in_backward(self) -> Bools:
        """Launched while the autograd engine ran."""
        view = self.view
        lane = view.timeline.lane[np.maximum(view.launch_row, 0)]
        return (self.backward.contains(view.launch_start) | self._engine_lanes[lane]) & view.launched

    @cached_property
    def crosses_bus(self) -> Bools:
        """Copies between host and device; those inside the device are work like any kernel."""
        view, t = self.view, self.view.timeline
        outside = np.array([_leaves_device(n) for n in t.names])
        crossing: Bools = (t.kind[view.work] == Kind.MEMCPY) & outside[t.name[view.work]]
        return crossing

    @cached_property
    def to_host(self) -> Bools:
        """Copies from the device to the host."""
        return self.crosses_bus & self._named("DtoH", "DeviceToHost", "Device -> Pageable", "Device -> Pinned", "D2H")

    @cached_property
    def pageable(self) -> Bools:
        """Copies whose host side is pageable: the driver stages them through its own buffer."""
        return self.crosses_bus & self._named("Pageable")

    def _named(self, *parts: str) -> Bools:
        t = self.view.timeline
        hit = np.array([any(p in n for p in parts) for n in t.names])
        named: Bools = hit[t.name[self.view.work]]
        return named

    @cached_property
    def communication(self) -> Bools:
        """Collectives and point-to-point kernels."""
        found: Bools = self.work == Work.COMMUNICATION
        return found


_SAYS_NOTHING = 255


def _code(work: Work | None) -> int:
    return _SAYS_NOTHING if work is None else int(work)


def _leaves_device(name: str) -> bool:
    inside = ("DtoD", "DeviceToDevice", "Device -> Device", "D2D")
    return not any(word in name for word in inside)


_last: list[Purposes] = []


def purposes_of(view: TraceView) -> Purposes:
    """Computed once for a view."""
    if not _last or _last[0].view is not view:
        _last[:] = [Purposes(view)]
    return _last[0]
