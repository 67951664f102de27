"""Records a few steady steps with PyTorch's profiler, then gets out of the way."""

from __future__ import annotations

import os
import sys
from typing import Any, Optional

from stallwise.instrument.recorder import Recorder


class ProfileWindow:
    """Starts the profiler `warm` steps before `first`, keeps steps first..last, writes trace.json.gz, and is done."""

    def __init__(self, recorder: Recorder, folder: str, first: int, last: int, warm: int = 1) -> None:
        self._recorder = recorder
        self._folder = folder
        self._first = first
        self._last = last
        self._warm = warm
        self._profiler: Any = None
        self._done = False
        recorder.step_listeners.append(self.on_step)

    def on_step(self, number: int) -> None:
        """`number` steps have ended."""
        if self._done:
            return
        try:
            if self._profiler is None and number >= self._first - self._warm:
                self._begin()
            elif self._profiler is not None:
                self._profiler.step()
                if number > self._last:
                    self.finish()
        except Exception as error:
            self._done = True
            sys.stderr.write("stallwise: no trace (%s: %s); the job goes on\n" % (type(error).__name__, error))

    def _begin(self) -> None:
        torch = sys.modules.get("torch")
        if torch is None:
            self._done = True
            return
        profiler = torch.profiler
        activities = [profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(profiler.ProfilerActivity.CUDA)
        self._profiler = profiler.profile(
            activities=activities,
            schedule=profiler.schedule(wait=0, warmup=self._warm, active=self._last - self._first + 1, repeat=1),
            on_trace_ready=self._write,
            record_shapes=True,
        )
        self._profiler.start()

    def _write(self, profiler: Any) -> None:
        os.makedirs(self._folder, exist_ok=True)
        profiler.export_chrome_trace(os.path.join(self._folder, "trace.json.gz"))

    def finish(self) -> None:
        """Stops the profiler; also called when the job ends inside the window."""
        if self._profiler is None or self._done:
            return
        self._done = True
        self._profiler.stop()
        self._profiler = None
        self._recorder.mark("profiled", "steps %d to %d" % (self._first, self._last))


def parse_steps(text: Optional[str]) -> "tuple[int, int]":
    """ "10:14" means steps 10 to 14; the default leaves ten for warm-up."""
    if not text:
        return 10, 13
    first, _, last = text.partition(":")
    return int(first), int(last or first)
