"""Where one thread's time goes: each moment of a step belongs to exactly one stage, or to none, which is side work.

The innermost open span of the user's that is a stage owns the time; without one the outermost hook does (a module's call, a
backward pass); without one a compiled function. So a span around a hooked call is counted once, a stage inside a stage is taken
out of the outer one, and stages never exceed the step. Rows are the user's spans by their own names, each with all that lies in
it. A step that ends inside open spans cuts them: each step gets its part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    from stallwise.recorder.device_clock import DeviceClock
    from stallwise.recorder.span import Span


class ThreadClock:
    """The open ranges of one thread, and the seconds of the current step. `device` is set for the thread that trains."""

    __slots__ = (
        "compiled", "device", "event", "hook", "now", "owner", "pending", "rows", "since_s", "spans", "stages", "user"
    )  # fmt: skip

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.device: Optional["DeviceClock"] = None
        self.spans: List["Span"] = []  # open, outermost first
        self.user: Optional[str] = None  # the stage of the innermost that is one
        self.hook: Optional[str] = None  # the stage of the outermost call that is hooked
        self.compiled: Optional[str] = None  # inside a compiled function, of which it shows later what it was
        self.owner: Optional[str] = None
        self.since_s = 0.0  # the owner has had the time
        self.event: Any = None  # the device's stamp of the same moment
        self.stages: Dict[str, float] = {}
        self.rows: Dict[str, float] = {}
        self.pending: Optional[Tuple[str, Callable[[], None]]] = None  # a stage, and what is due when it is over

    def settle(self, now_s: Optional[float] = None) -> None:
        """Something was opened or closed: the time so far is the last owner's, from here on it is the new one's."""
        owner, was = self.user or self.hook or self.compiled, self.owner
        if owner == was:
            return
        if now_s is None:
            now_s = self.now()
        if was is not None:
            self.stages[was] = self.stages.get(was, 0.0) + now_s - self.since_s
        self.owner = owner
        device = self.device
        if device is None:
            self.event = None
            self.since_s = now_s
        else:
            stamp = device.stamp()
            device.add_stage(was, self.event, stamp)
            self.event = stamp
            self.since_s = self.now()  # what stamping takes is no stage's

    def due(self) -> None:
        """Does what waited for the end of a stage, if it is over."""
        pending = self.pending
        if pending is not None and self.owner != pending[0]:
            self.pending = None
            pending[1]()

    def cut(self, now_s: float, boundary: Any = None) -> Tuple[Dict[str, float], Dict[str, float]]:
        """A step ends: its seconds by stage and by row. What is open goes on in the next one. `boundary`: the device's stamp."""
        stages, self.stages = self.stages, {}
        rows, self.rows = self.rows, {}
        owner = self.owner
        if owner is not None:
            stages[owner] = stages.get(owner, 0.0) + now_s - self.since_s
            self.since_s = now_s
            if self.device is not None:
                self.device.add_stage(owner, self.event, boundary)
            self.event = boundary
        if self.spans:
            self.spans = [span for span in self.spans if span.is_open]
            for span in self.spans:
                span.cut(now_s, rows, boundary)
        return stages, rows

    def so_far(self, now_s: float) -> Tuple[Dict[str, float], Dict[str, float]]:
        """Copies of what `cut` would give, nothing is cut."""
        stages, rows = dict(self.stages), dict(self.rows)
        if self.owner is not None:
            stages[self.owner] = stages.get(self.owner, 0.0) + now_s - self.since_s
        for span in self.spans:
            if span.is_row:
                rows[span.name] = rows.get(span.name, 0.0) + now_s - span.begin_s
        return stages, rows

    def skip(self, seconds: float) -> None:
        """So much of the time just passed was the recorder's own: no open range is charged with it."""
        self.since_s += seconds
        for span in self.spans:
            span.begin_s += seconds

    def rename(self, old: str, new: Optional[str]) -> None:
        """What was booked under a name for the time being gets its stage; None: it was side work."""
        seconds = self.stages.pop(old, 0.0)
        if new is not None and seconds:
            self.stages[new] = self.stages.get(new, 0.0) + seconds
        if self.device is not None:
            self.device.rename(old, new)
