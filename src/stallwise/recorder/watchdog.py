"""When no step ends for too long, writes the stacks of all threads into the record: the hang explains itself."""

from __future__ import annotations

import faulthandler
import os
import tempfile
import threading
from collections import deque
from typing import TYPE_CHECKING, Deque

from stallwise.recorder import threads

if TYPE_CHECKING:
    from stallwise.recorder.recorder import Recorder

AT_LEAST_S = 60.0  # first steps compile and warm up; shorter silences are normal
TIMES_MEDIAN = 10.0  # ten usual steps without one ending is no longer noise
STACK_LIMIT = 20_000  # characters kept of the dump


class Watchdog:
    """A daemon thread that looks every few seconds; it takes no lock of the training thread."""

    def __init__(self, recorder: "Recorder", at_least_s: float = AT_LEAST_S, look_every_s: float = 5.0) -> None:
        self._recorder = recorder
        self._at_least_s = at_least_s
        self._look_every_s = look_every_s
        self._recent: Deque[float] = deque(maxlen=32)  # steps, one at each look
        self._dumped_for = -1
        self._pid = os.getpid()
        self._quit = threading.Event()

    def start(self) -> None:
        """Begins to watch."""
        threads.begin(self._run, "stallwise-watchdog")

    def _run(self) -> None:
        while not self._quit.wait(self._look_every_s) and os.getpid() == self._pid:
            self.look()

    def look(self) -> bool:
        """Writes the stacks if the current step is overdue; once per silence."""
        recorder = self._recorder
        silent_s = recorder.now() - recorder.last_end
        self._recent.append(recorder.last_step_s)
        usual_s = sorted(self._recent)[len(self._recent) // 2]
        if recorder.number == 0 or silent_s < max(self._at_least_s, TIMES_MEDIAN * usual_s):
            return False
        if self._dumped_for == recorder.number:
            return False
        self._dumped_for = recorder.number
        recorder.writer.put(
            {"k": "stack", "n": recorder.number, "t": recorder.wall(), "text": stacks(), "silent_s": silent_s}
        )
        return True


def stacks() -> str:
    """Every thread's Python stack as text."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file=file, all_threads=True)
        file.seek(0)
        return file.read(STACK_LIMIT)
