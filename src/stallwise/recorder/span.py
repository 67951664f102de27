"""A range that the user named."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any, Dict, Optional

from stallwise.recorder import step_boundaries
from stallwise.recorder.error_origin import quietly
from stallwise.recorder.stage_names import stage_of
from stallwise.recorder.suspension import SUSPENDABLE, watch

if TYPE_CHECKING:
    from stallwise.recorder.recorder import Recorder
    from stallwise.recorder.thread_clock import ThreadClock

_frame = sys._getframe
_ident = threading.get_ident
_WEAKEST = step_boundaries.STRENGTH[step_boundaries.SPAN]


class Span:
    """One timed range of one thread: two reads of the clock and two updates of dictionaries, about two microseconds."""

    __slots__ = ("_clock", "_recorder", "_watch", "begin_s", "event", "is_row", "name", "stage")

    def __init__(self, recorder: "Recorder", name: str) -> None:
        self._recorder = recorder
        self._clock: Optional["ThreadClock"] = None
        self._watch: Any = None
        self.name = name
        self.stage = stage_of(name)
        self.event: Any = None

    def __enter__(self) -> "Span":
        if _frame(1).f_code.co_flags & SUSPENDABLE:
            self._watch = quietly(watch, self, _frame(1))
        try:
            self.open()
        except (
            BaseException
        ):  # a signal handler of the user's raised in here: then the block never begins, nor does its span
            self._clock = None
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        if self._watch is not None:
            self._watch.forget(self)
            self._watch = None
        outermost = self.close()
        recorder = self._recorder
        if recorder.writer.thread is None:
            recorder.writer.begin()
        if outermost and recorder.boundaries.strength <= _WEAKEST:
            recorder.span_ended(self.name)

    def open(self) -> None:
        """Begins, or goes on after a pause."""
        clock = self._recorder.clocks.get(_ident()) or self._recorder.clock()
        self._clock = clock
        self.is_row = True
        for other in clock.spans:
            if other.name == self.name:  # a range inside one of its own name: its seconds are in that one's row
                self.is_row = False
        clock.spans.append(self)
        device, event = clock.device, clock.event
        stage = self.stage
        if stage is None:
            self.begin_s = clock.now()
        else:
            clock.user = stage
            if clock.owner is None and device is None:
                clock.owner = stage
                self.begin_s = clock.since_s = clock.now()
            else:
                changes = clock.owner != stage
                clock.settle()
                self.begin_s = clock.since_s if changes else clock.now()
        if device is not None and self.is_row:
            self.event = clock.event if clock.event is not event else device.stamp()

    def close(self) -> bool:
        """Ends, or pauses: True for a range that lies in none of its own name."""
        clock = self._clock
        if clock is None:
            return False
        self._clock = None
        now_s = clock.now()
        spans = clock.spans
        if spans and spans[-1] is self:
            spans.pop()
        elif self in spans:  # not closed in order: a generator, or two tasks of one thread
            spans.remove(self)
        if self.is_row:
            rows, name = clock.rows, self.name
            rows[name] = rows.get(name, 0.0) + now_s - self.begin_s
        device, before = clock.device, clock.event
        if self.stage is not None:
            user = None
            for other in spans:
                user = other.stage or user
            clock.user = user
            clock.settle(now_s)
        if device is not None and self.event is not None:
            device.add_row(self.name, self.event, clock.event if clock.event is not before else device.stamp())
            self.event = None
        if clock.pending is not None:
            clock.due()
        return self.is_row

    @property
    def is_open(self) -> bool:
        """False for one that an exception out of a signal handler left half closed."""
        return self._clock is not None

    def cut(self, now_s: float, rows: Dict[str, float], boundary: Any) -> None:
        """A step ends inside: its part of this range is complete."""
        if self.is_row:
            rows[self.name] = rows.get(self.name, 0.0) + now_s - self.begin_s
            clock = self._clock
            if clock is not None and clock.device is not None and self.event is not None:
                clock.device.add_row(self.name, self.event, boundary)
            self.event = boundary
        self.begin_s = now_s
