"""Device time without a sync: CUDA events put into the stream now and read when they have long passed.

Launches are asynchronous, so a host timer around `forward` sees 8 ms of a 58 ms step. Events are stamped by the device as
it gets there; asking `query()` later costs about a microsecond and never waits. Nothing is stamped or asked while a stream
is being captured into a graph: it would become part of the graph, or break it. An event takes some microseconds of the host to
record, so of short steps only some are stamped: what stamping takes is measured and kept to a share of the steps. Where the
launch queue is full a stamp waits like any launch would in its place; that wait is the job's own and no cost of stamping.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

KEEP_STEPS = 64  # how many steps may wait for the device; beyond it the oldest is given up, never waited for
MOST_STAMPS = 96  # of one step: a loop of a thousand small modules is not worth two thousand events
MOST_SHARE = 0.002  # of the steps' time may go into stamping
MOST_REST = 200  # steps: even of the shortest some are stamped

Pair = List[Any]  # name, begin, end
Waiting = Tuple[int, int, Any, Any, List[Pair], List[Pair], List[Any]]
Passed = Tuple[int, int, float, Dict[str, float], Dict[str, float]]


class DeviceClock:
    """Pairs of events by stage and by the user's spans, step by step. `new_event` is a factory: tests bring a fake one.

    Stages never overlap, so that they and the rest are the step, from border to border. An event may end one stage and begin
    the next.
    """

    def __init__(
        self,
        new_event: Any,
        is_capturing: Callable[[], bool] = lambda: False,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._new_event = new_event
        self._is_capturing = is_capturing
        self._now = now
        self._stamp_s = math.inf  # the fastest stamp so far: what is beyond it waited for room in the queue
        self._pair_s = (
            math.inf
        )  # the fastest reading of a pair so far: the first ones load code, others wait for a lock
        self._read_s = 0.0  # taken by reading events in this step
        self._rest = 0  # steps that go unstamped from here
        self._most_rest = (
            3  # grows fourfold from one stamped step to the next: the first ones say little of those to come
        )
        self._device_s = 0.0  # of the last stamped step: a host that runs ahead has shorter ones for a while
        self._stands_for = 1  # steps, the next one that is stamped
        self._pool: List[Any] = []
        self._begin: Any = None  # of the step
        self._end: Any = None
        self._stages: List[Pair] = []
        self._rows: List[Pair] = []
        self._used: List[Any] = []  # events of this step
        self._waiting: Deque[Waiting] = deque()

    def stamp(self) -> Any:
        """An event in the current stream; None in a step that goes unstamped or is full of them."""
        if self._rest or len(self._used) >= MOST_STAMPS or self._is_capturing():
            return None
        return self._stamp()

    def _stamp(self) -> Any:
        began_s = self._now()
        event = self._pool.pop() if self._pool else self._new_event()
        event.record()
        self._stamp_s = min(self._stamp_s, self._now() - began_s)
        self._used.append(event)
        return event

    def add_stage(self, stage: Optional[str], begin: Any, end: Any) -> None:
        """A stage went from one stamp to the other; nothing where either is missing."""
        if stage is not None and begin is not None and end is not None:
            self._stages.append([stage, begin, end])

    def add_row(self, name: str, begin: Any, end: Any) -> None:
        """A span of the user's, with all that lies in it."""
        if begin is not None and end is not None:
            self._rows.append([name, begin, end])

    def rename(self, old: str, new: Optional[str]) -> None:
        """It shows now what a stage was; None: side work."""
        for pair in self._stages:
            if pair[0] == old:
                pair[0] = new

    def begin_step(self) -> None:
        """The first step that is stamped begins here."""
        self._begin = self.stamp()

    def boundary(self) -> Any:
        """The stamp between this step and the next; None where neither is stamped."""
        self._end = None if self._rest > 1 or self._is_capturing() else self._stamp()
        return self._end

    def end_step(self, number: int, step_s: float, whole: bool = True) -> None:
        """The current step's pairs now wait for the device; it took `step_s`. Not `whole`: they are no one step's."""
        begin, end, used = self._begin, self._end, self._used
        full = len(used) >= MOST_STAMPS  # then part of it went unstamped, and its sums are too small
        if self._rest:
            self._rest -= 1
        else:
            took_s = len(used) * self._stamp_s + self._read_s if used else 0.0
            self._read_s = 0.0
            step_s = max(step_s, self._device_s, 1e-6)
            self._rest = min(math.floor(took_s / (MOST_SHARE * step_s)), self._most_rest, MOST_REST)
            self._most_rest = 4 * self._rest + 3
        self._begin, self._used = (None, []) if self._rest or end is None else (end, [end])
        if self._begin is not None:
            used = [event for event in used if event is not end]  # the next step's now
        if whole and begin is not None and end is not None and not full:
            self._waiting.append((number, self._stands_for, begin, end, self._stages, self._rows, used))
            self._stands_for = 1
        else:
            self._stands_for += 1
            # Its first event may be the last one of a step that still waits: free with that one, not before.
            (self._waiting[-1][6] if self._waiting else self._pool).extend(used)
        self._stages, self._rows, self._end = [], [], None
        while len(self._waiting) > KEEP_STEPS:
            self._pool += self._waiting.popleft()[6]

    def passed(self) -> List[Passed]:
        """Of every stamped step whose last event has passed: its number, for how many it stands, its device seconds in all,
        by stage and by span.

        Never waits.
        """
        done: List[Passed] = []
        if not self._waiting or self._is_capturing():
            return done
        began_s, pairs = self._now(), 0
        while self._waiting:
            step = self._waiting[0]
            number, stands_for, begin, end, stages, rows, _ = step
            if not end.query():
                break
            self._waiting.popleft()
            try:
                took_s = begin.elapsed_time(end) / 1e3
                done.append((number, stands_for, took_s, _sums(stages), _sums(rows)))
                self._device_s = took_s
            except RuntimeError:  # a span on another stream that has not come so far, or on another device
                self._stands_for += stands_for
            self._pool += step[6]
            pairs += 1 + len(stages) + len(rows)
        if pairs:
            self._pair_s = min(self._pair_s, (self._now() - began_s) / pairs)
            self._read_s += pairs * self._pair_s
        return done


def _sums(pairs: List[Pair]) -> Dict[str, float]:
    seconds: Dict[str, float] = {}
    for name, begin, end in pairs:
        if name is not None:
            seconds[name] = seconds.get(name, 0.0) + max(begin.elapsed_time(end), 0.0) / 1e3
    return seconds


def find_device_clock() -> Optional[DeviceClock]:
    """A clock if this process has torch and a live CUDA (or ROCm) context; never imports or initialises either."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    capturing = getattr(cuda, "is_current_stream_capturing", None) or (lambda: False)
    return DeviceClock(lambda: cuda.Event(enable_timing=True), capturing)
