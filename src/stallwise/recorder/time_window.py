"""A window by time, for a program that works on a device and shows no steps: the device's own work and its launches.

Whatever repeats in the launches shows the steps later. A thread of ours waits and keeps the time; the profiler itself is started
and stopped by the main thread between two of its lines, since PyTorch's bears no other. It makes way at once for a profiler of
the job's and for the capture of a CUDA graph.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any, Optional

from stallwise.recorder import schema, threads
from stallwise.recorder.detach import Detach
from stallwise.recorder.error_origin import say
from stallwise.recorder.on_main_thread import OnMainThread
from stallwise.recorder.profile_window import ProfileWindow
from stallwise.recorder.recorder import Recorder

LOOK_EVERY_S = 0.25
AFTER_S = 5.0  # of work on the device without steps: set-up and warm-up of small programs are over
AT_LATEST_S = 600.0  # after the first look: a program that has not worked on its device by then is none of ours
FOR_S = 0.5
TRACE = schema.TRACE_FILES[schema.TIME_WINDOW]


class TimeWindow:
    """Waits for its time, traces once, and ends."""

    def __init__(self, recorder: Recorder, by_steps: ProfileWindow) -> None:
        self._recorder = recorder
        self._by_steps = by_steps
        self._main = OnMainThread()
        self._quit = threading.Event()
        self._profiler: Any = None
        self._detach: Optional[Detach] = None
        self._start_s = 0.0
        self._from_s = 0.0

    def start(self) -> None:
        """Begins to wait."""
        self._recorder.closers.append(self.make_way)
        if self._recorder.stages is not None:
            self._recorder.stages.before_capture.append(self.make_way)
        threads.begin(self._run, "stallwise-window")

    def make_way(self) -> None:
        """Ends for good; an open window is closed first, by the main thread."""
        self._quit.set()
        self._main.forget()
        if self._profiler is not None and threading.current_thread() is threading.main_thread():
            self._by_steps.safely(self._close)

    def _run(self) -> None:
        torch = self._wait()
        if torch is None or not self._main.call(lambda: self._by_steps.safely(self._open, torch)):
            return
        while self._profiler is None:
            if self._quit.wait(LOOK_EVERY_S):
                return
        self._quit.wait(FOR_S)
        if not self._quit.is_set():
            self._main.call(lambda: self._by_steps.safely(self._close))

    def _wait(self) -> Any:
        """PyTorch, when it is time; None when it never will be."""
        recorder, began_s, since_s, allocated = self._recorder, time.monotonic(), 0.0, -1
        while not self._quit.wait(LOOK_EVERY_S):
            now_s = time.monotonic()
            torch = sys.modules.get("torch")
            if now_s - began_s > AT_LATEST_S or recorder.boundaries.kind is not None:
                return None
            if torch is None or not torch.cuda.is_initialized():
                continue
            recorder.writer.begin()  # a process with a live device is worth a record, whatever it does
            if not self._main.possible():
                return None
            before, allocated = allocated, _allocations(torch)
            if allocated == before or not since_s:
                since_s = now_s  # nothing is computed: it loads, or waits
            elif now_s - since_s >= AFTER_S:
                return torch
        return None

    def _open(self, torch: Any) -> None:
        stages, recorder = self._recorder.stages, self._recorder
        if self._quit.is_set() or recorder.boundaries.kind is not None or (stages is not None and stages.capturing):
            self._quit.set()
            return
        guard = self._by_steps.guard(torch)
        why = guard.on()
        if why is not None:
            recorder.mark("no trace", why)
            self._quit.set()
            return
        guard.make_way.append(self.make_way)
        before = time.perf_counter()
        self._detach = Detach(torch, lambda: bool(stages is not None and stages.captured_graphs))
        self._detach.ask()
        profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
        self._by_steps.guarded(profiler.start)
        self._start_s, self._from_s = time.perf_counter() - before, recorder.wall()
        self._say(schema.TIME_WINDOW)
        self._profiler = profiler

    def _close(self) -> None:
        profiler, self._profiler = self._profiler, None
        recorder, detach = self._recorder, self._detach
        if profiler is None or detach is None:
            return
        before, to_s = time.perf_counter(), recorder.wall()
        self._say(schema.EDGE)
        leaves = detach.will()
        self._by_steps.guarded(profiler.stop)
        if leaves and not self._quit.is_set():
            self._by_steps.guarded(detach.finish)
        stop_s = time.perf_counter() - before
        self._say(None if leaves else schema.AFTER)
        recorder.not_the_jobs(self._start_s + stop_s)
        folder = schema.folder_name(recorder.writer.path)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, TRACE)
        profiler.export_chrome_trace(path + ".part.gz")
        os.replace(path + ".part.gz", path)
        recorder.writer.put(
            {
                "k": "window", "window": schema.TIME_WINDOW, "first": -1, "last": -1, "file": TRACE, "from": self._from_s,
                "to": to_s, "start_s": round(self._start_s, 6), "stop_s": round(stop_s, 6),
            }
        )  # fmt: skip

    def _say(self, window: Optional[str]) -> None:
        """What steps that end from now on are called, should there be any."""
        self._recorder.window = self._by_steps.untraced = window


def _allocations(torch: Any) -> int:
    """How often the device's memory was asked for so far: what computes asks all the time."""
    return int(torch.cuda.memory_stats().get("allocation.all.allocated", 0))


def watch(recorder: Recorder, by_steps: ProfileWindow) -> None:
    """Starts one; where no thread can start, there is none."""
    try:
        TimeWindow(recorder, by_steps).start()
    except RuntimeError as error:
        say("no window by time (%s); the job goes on" % error)
