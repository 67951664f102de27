"""Device time without a sync: CUDA events put into the stream now and read when they have long passed.

Launches are asynchronous, so a host timer around `forward` sees 8 ms of a 58 ms step. Events are stamped by the device as
it gets there; asking `query()` later costs about a microsecond and never waits. Nothing is stamped or asked while a stream
is being captured into a graph: it would become part of the graph, or break it. An event takes some microseconds of the host to
record, so of short steps only some are stamped: what stamping takes is measured and kept to a share of the steps.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

KEEP_STEPS = 64  # how many steps may wait for the device; beyond it the oldest is given up, never waited for
MOST_PAIRS = 48  # of one step: a loop of a thousand small modules is not worth two thousand events
MOST_SHARE = 0.002  # of the steps' time may go into stamping
MOST_REST = 200  # steps: even of the shortest some are stamped

Pair = List[Any]  # stage, begin, end


class DeviceClock:
    """Pairs of events by stage, step by step. `new_event` is a factory so that tests bring a fake one."""

    def __init__(
        self,
        new_event: Any,
        is_capturing: Callable[[], bool] = lambda: False,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._new_event = new_event
        self._is_capturing = is_capturing
        self._now = now
        self._took_s = 0.0  # by the stamps of this step
        self._rest = 0  # steps that go unstamped from here
        self._stands_for = 1  # steps, the next one that is stamped
        self._pool: List[Any] = []
        self._open: List[Pair] = []
        self._waiting: Deque[Tuple[int, int, List[Pair]]] = deque()

    def _stamp(self) -> Any:
        began_s = self._now()
        event = self._pool.pop() if self._pool else self._new_event()
        event.record()
        self._took_s += self._now() - began_s
        return event

    def begin(self, stage: str) -> Any:
        """An event in the current stream, to be handed to `end`; None in a step that goes unstamped or is full of them."""
        if self._rest or len(self._open) >= MOST_PAIRS or self._is_capturing():
            return None
        return self._stamp()

    def end(self, stage: str, begin: Any) -> None:
        """The stage that `begin` opened is over."""
        if not self._is_capturing():
            self._open.append([stage, begin, self._stamp()])

    def end_step(self, number: int, step_s: float) -> None:
        """The current step's pairs now wait for the device; it took `step_s`."""
        if self._rest:
            self._rest -= 1
            self._stands_for += 1
            self._recycle(self._open)  # a stage that began before the step did
            self._open = []
            return
        if self._open:
            if len(self._open) < MOST_PAIRS:
                self._waiting.append((number, self._stands_for, self._open))
                self._stands_for = 1
            else:  # part of the step went unstamped: its sums would be too small
                self._recycle(self._open)
            self._open = []
        took_s, self._took_s = self._took_s, 0.0
        self._rest = min(math.floor(took_s / (MOST_SHARE * max(step_s, 1e-6))), MOST_REST)
        while len(self._waiting) > KEEP_STEPS:
            self._recycle(self._waiting.popleft()[2])

    def passed(self) -> List[Tuple[int, int, Dict[str, float]]]:
        """Of every stamped step whose last event has passed: its number, for how many it stands, device seconds by stage.

        Never waits.
        """
        done: List[Tuple[int, int, Dict[str, float]]] = []
        if not self._waiting or self._is_capturing():
            return done
        began_s = self._now()
        while self._waiting:
            number, stands_for, pairs = self._waiting[0]
            if not pairs[-1][2].query():
                break
            self._waiting.popleft()
            seconds: Dict[str, float] = {}
            for name, begin, end in pairs:
                seconds[name] = seconds.get(name, 0.0) + begin.elapsed_time(end) / 1e3
            self._recycle(pairs)
            done.append((number, stands_for, seconds))
        self._took_s += self._now() - began_s
        return done

    def _recycle(self, pairs: List[Pair]) -> None:
        for _, begin, end in pairs:
            self._pool.append(begin)
            self._pool.append(end)


def find_device_clock() -> Optional[DeviceClock]:
    """A clock if this process has torch and a live CUDA (or ROCm) context; never imports or initialises either."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    capturing = getattr(cuda, "is_current_stream_capturing", None) or (lambda: False)
    return DeviceClock(lambda: cuda.Event(enable_timing=True), capturing)
