"""Where the training thread is, a hundred times a second: the Python lines that held it while the device had nothing to do.

A thread of ours reads the other's frames (`sys._current_frames`) while it holds the interpreter lock, so no frame outlives the
look and nothing of the user's is freed here. A stack is written out once; a sample is three numbers.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
import time
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

from stallwise.instrument import schema

if TYPE_CHECKING:
    from stallwise.instrument.recorder import Recorder

EVERY_S = 0.01
IN_WINDOW_EVERY_S = (
    0.001  # a window is short, and what it traces is slowed anyway; never in the one that must be undisturbed
)
DENSE_FOR_S = 60.0  # of steps: enough samples for every line that matters; afterwards a tenth is plenty
LATER_EVERY_S = 0.1
DEPTH = 40  # frames from the innermost outwards
MOST_STACKS = 20_000
SILENT_FOR_S = 10.0  # a busy process in which no step was ever found writes its stacks after so long
BUSY_SHARE = 0.3  # of one core; a launcher that waits for its children is not worth a record


_STANDARD = sysconfig.get_paths().get("stdlib", "") + os.sep
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Sampler:
    """A daemon thread; what it costs is measured in bench/gpu/recorder_overhead.py."""

    def __init__(self, recorder: "Recorder", every_s: float = EVERY_S) -> None:
        self._recorder = recorder
        self._every_s = every_s
        self._ids: Dict[int, int] = {}
        self._files: Dict[Tuple[int, int, str], str] = {}  # by code: most frames of a new stack are old ones
        self._new: List[Dict[str, Any]] = []
        self._ms: List[float] = []
        self._id: List[int] = []
        self._stage: List[Any] = []
        self._from_s = 0.0
        self._quit = False
        self._pid = os.getpid()
        self._here = os.getcwd() + os.sep

    def start(self) -> None:
        """Begins to look."""
        self._recorder.writer.before_flush.append(self._hand_over)
        self._recorder.closers.append(self.stop)
        threading.Thread(target=self._run, name="stallwise-stacks", daemon=True).start()

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
                time.sleep(self._every_s if dense else LATER_EVERY_S)
            if recorder.busy:
                continue
            stages = recorder.stages
            self._look((stages.thread if stages is not None else None) or main, stages)
            if not recorder.writer.begun and now_s - begun_s > SILENT_FOR_S:
                if time.process_time() - busy_s > BUSY_SHARE * (now_s - begun_s):
                    recorder.writer.begin()
                begun_s, busy_s = now_s, time.process_time()
                if not recorder.writer.begun:
                    self._forget()

    def _look(self, thread: Any, stages: Any) -> None:
        if self._quit or os.getpid() != self._pid:
            self._quit = True
            return
        frame: Any = sys._current_frames().get(thread)
        if frame is None:
            return  # the thread that trained has ended
        key, depth, at = 0, 0, frame
        while at is not None and depth < DEPTH:
            key = (key * 1_000_003 + id(at.f_code) + at.f_lasti) & 0xFFFFFFFFFFFFFFFF
            at = at.f_back
            depth += 1
        number = self._ids.get(key)
        if number is None:
            number = self._remember(key, frame)
        frame = at = None
        wall_s = self._recorder.wall()
        if not self._ms:
            self._from_s = wall_s
        self._ms.append(round((wall_s - self._from_s) * 1e3, 1))
        self._id.append(number)
        self._stage.append(stages.stage if stages is not None else None)

    def _remember(self, key: int, frame: Any) -> int:
        if len(self._ids) >= MOST_STACKS:
            return -1
        stack: List[str] = []
        while frame is not None and len(stack) < DEPTH:
            code = frame.f_code
            which = (id(code), code.co_firstlineno, code.co_name)
            file = self._files.get(which)
            if file is None:
                file = self._files[which] = self._short(code.co_filename)
            stack.append("%s:%d %s" % (file, frame.f_lineno or 0, code.co_name))
            frame = frame.f_back
        number = self._ids[key] = len(self._ids)
        self._new.append({"k": "frames", "id": number, "stack": stack})
        return number

    def _short(self, file: str) -> str:
        for place in ("site-packages/", "dist-packages/"):
            if place in file:
                return schema.LIBRARY + file.rpartition(place)[2]
        if file.startswith((_STANDARD, _OURS, "<frozen")):
            return schema.LIBRARY + os.sep.join(file.split(os.sep)[-2:])
        if file.startswith(self._here):
            return file[len(self._here) :]
        return os.sep.join(file.split(os.sep)[-2:])

    def _forget(self) -> None:
        """Nothing is trained here so far: keep no more than the last seconds."""
        self._ms, self._id, self._stage = [], [], []

    def _hand_over(self) -> None:
        """Called by the writer's thread before it writes."""
        new, self._new = self._new, []
        ms, self._ms = self._ms, []
        ids, self._id = self._id, []
        stage, self._stage = self._stage, []
        for line in new:
            self._recorder.writer.put(line)
        count = min(len(ms), len(ids), len(stage))  # the sampling thread may be between two of them
        if count:
            line = {"k": "samples", "t": self._from_s, "ms": ms[:count], "id": ids[:count], "stage": stage[:count]}
            self._recorder.writer.put(line)
