"""Where the training thread is, a hundred times a second: the Python lines that held it while the device had nothing to do.

A thread of ours reads where the other is (`frames.current_stack`) while it holds the interpreter lock, so no frame outlives the
look and nothing of the user's is freed here. A line is spelled out once, a stack is a list of lines, a sample is three numbers:
whatever this thread does, the training thread waits for, so a look is some microseconds, and looks at a thread that computes
are as far apart as their share of its time asks for.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Deque, Dict, List, Optional, Tuple

from stallwise.recorder import schema, threads
from stallwise.recorder.frames import Place, current_stack
from stallwise.recorder.line_names import LineNames

if TYPE_CHECKING:
    from stallwise.recorder.recorder import Recorder

EVERY_S = 0.01
IN_WINDOW_EVERY_S = (
    0.001  # a window is short, and what it traces is slowed anyway; never in the one that must be undisturbed
)
DENSE_FOR_S = 60.0  # of steps: enough samples for every line that matters; afterwards a tenth is plenty
LATER_EVERY_S = 0.1
DEPTH = 40  # frames from the innermost outwards
MOST_STACKS = 20_000
# Of the training thread's time. A look costs a thread that computes what it holds the lock for, measured, and the handing over
# of the lock: the thread is put to sleep and has to be woken, tens to hundreds of microseconds. One that waits loses nothing.
MOST_SHARE = 0.004
HAND_OVER_S = 100e-6
COMPUTES = 0.5  # of the time since the last look on a core
USUAL = 0.1  # of the newest look in the running mean
SILENT_FOR_S = 10.0  # a busy process in which no step was ever found writes its stacks after so long
BUSY_SHARE = 0.3  # of one core; a launcher that waits for its children is not worth a record


class Sampler:
    """A daemon thread; what it costs is measured in bench/gpu/recorder_overhead.py."""

    def __init__(self, recorder: "Recorder", every_s: float = EVERY_S) -> None:
        self._recorder = recorder
        self._every_s = every_s
        self._ids: Dict[Tuple[int, ...], int] = {}  # stacks
        self._names = LineNames()
        self._new: Deque[Dict[str, Any]] = deque()
        self._samples: List[Tuple[float, int, Any]] = []  # after the first one in ms, stack, stage
        self._from_s = 0.0
        self._held_s = 0.0  # by a usual look
        self._used_s = self._measured_s = 0.0  # processor and wall time of the training thread at the last look
        self._computes = True
        self._of: Any = None
        self._clock: Optional[int] = None  # of the training thread
        self._quit = False

    def start(self) -> None:
        """Begins to look."""
        self._recorder.writer.before_flush.append(self._hand_over)
        self._recorder.closers.append(self.stop)
        threads.begin(self._run, "stallwise-stacks")

    def stop(self) -> None:
        """No more looks."""
        self._quit = True

    def _run(self) -> None:
        recorder, begun_s = self._recorder, time.monotonic()
        main = threading.main_thread().ident
        busy_s, dense_until_s = time.process_time(), 0.0
        while not self._quit:
            now_s = time.monotonic()
            if recorder.number and not dense_until_s:
                dense_until_s = now_s + DENSE_FOR_S
            dense = recorder.writer.begun and (not dense_until_s or now_s < dense_until_s)
            if recorder.window in (schema.FULL_WINDOW, schema.TIME_WINDOW):
                time.sleep(IN_WINDOW_EVERY_S)
            else:
                time.sleep(self._pause_s() if dense else LATER_EVERY_S)
            if recorder.busy:
                continue
            thread = recorder.thread or main
            self._look(thread)
            self._measure_thread(thread)
            if not recorder.writer.begun and now_s - begun_s > SILENT_FOR_S:
                if time.process_time() - busy_s > BUSY_SHARE * (now_s - begun_s):
                    recorder.writer.begin()
                begun_s, busy_s = now_s, time.process_time()
                if not recorder.writer.begun:
                    self._forget()

    def _measure_thread(self, thread: Any) -> None:
        """How much of a core the thread has had since the last look."""
        now_s = time.monotonic()
        if thread != self._of:
            self._of = thread
            self._clock = next((_clock_of(t.native_id) for t in threading.enumerate() if t.ident == thread), None)
        try:
            used_s = time.clock_gettime(self._clock)  # type: ignore[arg-type]
        except (TypeError, OSError):  # not told here, or the thread has ended
            used_s = self._used_s + now_s - self._measured_s
        self._computes = used_s - self._used_s >= COMPUTES * (now_s - self._measured_s)
        self._used_s, self._measured_s = used_s, now_s

    def _pause_s(self) -> float:
        """Between two looks."""
        if not self._computes:
            return self._every_s
        return min(max(self._every_s, (self._held_s + HAND_OVER_S) / MOST_SHARE), LATER_EVERY_S)

    def _look(self, thread: Any) -> None:
        if self._quit:
            return
        began_s = time.perf_counter()
        places = current_stack(thread, DEPTH)
        if places:  # the thread that trained has not ended
            self._keep(places, self._recorder.stage)
            self._held_s += USUAL * (time.perf_counter() - began_s - self._held_s)
        while self._recorder.collected_at:
            places, looks = self._recorder.collected_at.popleft()
            for _ in range(looks):
                self._keep(places, schema.COLLECTION)

    def _keep(self, places: List[Place], stage: Optional[str]) -> None:
        stack = tuple(map(self._names.number, places))
        number = self._ids.get(stack)
        if number is None:
            number = self._remember(stack)
        wall_s = self._recorder.wall()
        if not self._samples:
            self._from_s = wall_s
        self._samples.append((round((wall_s - self._from_s) * 1e3, 1), number, stage))

    def _remember(self, stack: Tuple[int, ...]) -> int:
        if len(self._ids) >= MOST_STACKS:
            return -1
        number = self._ids[stack] = len(self._ids)
        self._new.append({"k": "frames", "id": number, "lines": stack})
        return number

    def _forget(self) -> None:
        """Nothing is trained here so far: keep no more than the last seconds."""
        self._samples = []

    def _hand_over(self) -> None:
        """Called by the writer's thread before it writes."""
        samples, self._samples = self._samples, []
        stacks = [self._new.popleft() for _ in range(len(self._new))]
        for line in (*self._names.take(), *stacks):  # a stack is written after the lines that it names
            self._recorder.writer.put(line)
        if samples:
            ms, ids, stages = zip(*samples)
            self._recorder.writer.put({"k": "samples", "t": self._from_s, "ms": ms, "id": ids, "stage": stages})


def _clock_of(native_id: Optional[int]) -> Optional[int]:
    """The kernel's number for the processor clock of a thread of ours (see clock_getcpuclockid(3) in Linux's C library).

    It is refused once the thread has ended; `pthread_getcpuclockid` would crash then.
    """
    return (~native_id << 3) | 6 if native_id is not None and sys.platform == "linux" else None
