"""A window by time, for a program that shows no steps where a profiler could follow them: the device's own work and its launches.

Opened, closed and written by a thread of ours, which nothing else runs in, so it disturbs no other; whatever repeats in the
launches shows the steps later. It makes way at once for a profiler of the job's and for the capture of a CUDA graph, which
calls from other threads would break.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any, Optional

from stallwise.instrument import schema
from stallwise.instrument.blame import say
from stallwise.instrument.detach import Detach
from stallwise.instrument.profile_window import ProfileWindow
from stallwise.instrument.recorder import Recorder

LOOK_EVERY_S = 0.25
AFTER_S = 5.0  # of a live device without steps: set-up and warm-up of small programs are over, of large ones long known
AT_LATEST_S = 600.0  # after the first look: a program that has not used its device by then is none of ours
FOR_S = 0.5
JOIN_S = 60.0
TRACE = schema.TRACE_FILES[schema.TIME_WINDOW]


class TimeWindow:
    """A daemon thread that waits for its time, traces once, and ends."""

    def __init__(self, recorder: Recorder, by_steps: ProfileWindow) -> None:
        self._recorder = recorder
        self._by_steps = by_steps
        self._quit = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def start(self) -> None:
        """Begins to wait."""
        self._recorder.closers.append(self.make_way)
        if self._recorder.stages is not None:
            self._recorder.stages.before_capture.append(self.make_way)
        self._thread = threading.Thread(target=self._run, name="stallwise-window", daemon=True)
        self._thread.start()

    def make_way(self) -> None:
        """Ends for good; an open window is closed first, on its own thread."""
        self._quit.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)

    def _run(self) -> None:
        try:
            torch = self._wait()
            if torch is not None:
                self._record(torch)
        except Exception as error:  # this thread is ours alone: nobody else's error can pass here
            self._recorder.mark("no trace", "%s: %s" % (type(error).__name__, str(error)[:200]))

    def _wait(self) -> Any:
        """PyTorch, when it is time; None when it never will be."""
        recorder, began_s, live_s = self._recorder, time.monotonic(), 0.0
        while not self._quit.wait(LOOK_EVERY_S):
            now_s = time.monotonic()
            torch = sys.modules.get("torch")
            if now_s - began_s > AT_LATEST_S:
                return None
            if torch is None or not torch.cuda.is_initialized():
                continue
            live_s = live_s or now_s
            recorder.writer.begin()  # a process with a live device is worth a record, whatever it does
            if recorder.borders.kind is not None and not self._by_steps.in_threads:
                live_s = now_s  # it has steps; they may still turn out to run elsewhere
                continue
            if now_s - live_s >= AFTER_S:
                return torch
        return None

    def _record(self, torch: Any) -> None:
        guard = self._by_steps.guard(torch)
        why = guard.on()
        if why is not None:
            self._recorder.mark("no trace", why)
            return
        guard.make_way.append(self.make_way)
        profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
        stages = self._recorder.stages
        detach = Detach(torch, lambda: bool(stages is not None and stages.captured_graphs))
        before = time.perf_counter()
        detach.ask()
        with guard.by_us():
            profiler.start()
        started, from_s = time.perf_counter(), self._recorder.wall()
        self._say(schema.TIME_WINDOW)
        self._quit.wait(FOR_S)
        self._say(schema.EDGE)
        stopping, to_s = time.perf_counter(), self._recorder.wall()
        leaves = detach.will()
        with guard.by_us():
            profiler.stop()
        if leaves and not self._quit.is_set():
            detach.finish()
        stopped = time.perf_counter()
        self._say(None if leaves else schema.AFTER)
        self._recorder.begin_steps()  # the one that ran meanwhile was not the job's usual
        folder = schema.folder_name(self._recorder.writer.path)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, TRACE)
        profiler.export_chrome_trace(path + ".part.gz")
        os.replace(path + ".part.gz", path)
        self._recorder.writer.put(
            {
                "k": "window", "window": schema.TIME_WINDOW, "first": -1, "last": -1, "file": TRACE, "from": from_s,
                "to": to_s, "start_s": round(started - before, 6), "stop_s": round(stopped - stopping, 6),
            }
        )  # fmt: skip

    def _say(self, window: Optional[str]) -> None:
        """What steps that end from now on are called, should there be any."""
        self._recorder.window = self._by_steps.untraced = window


def watch(recorder: Recorder, by_steps: ProfileWindow) -> None:
    """Starts one; where no thread can start, there is none."""
    try:
        TimeWindow(recorder, by_steps).start()
    except RuntimeError as error:
        say("no window by time (%s); the job goes on" % error)
