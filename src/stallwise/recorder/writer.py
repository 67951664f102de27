"""Appends lines to this process's own file from a background thread: crash-safe, bounded, silent when the disk is not.

The training thread only appends to a deque (about 50 ns). The thread wakes twice a second, so a kill loses at most the
last half second. Each batch of lines is one write to a file opened for it and closed again: a job that closes all
descriptors, and opens its checkpoint under a number that was ours, finds nothing of ours in it. A crash can tear only the
last line.
"""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional

from stallwise.recorder import threads
from stallwise.recorder.error_origin import say

FLUSH_EVERY_S = 0.5
LIMIT_BYTES = 64 << 20  # a year of steps at one line a second is about 6 GB; two segments of this keep the recent days
MOST_WAITING = 100_000  # lines, should the disk stall for hours
_STEP_KEYS = 6  # of every step's line: kind, number, time, duration, stages, border
_as_text = json.JSONEncoder(separators=(",", ":"), default=str).encode  # made once: `dumps` would make one a line


def _step_as_text(line: Dict[str, Any]) -> str:
    """The line of a step in a third of the encoder's time: whole microseconds and tenths, names that need no escapes."""
    stages = ",".join(['"%s":%.7f' % stage for stage in line["s"].items()])
    text = '{"k":"step","n":%d,"t":%.6f,"d":%.7f,"s":{%s},"b":"%s"' % (
        line["n"],
        line["t"],
        line["d"],
        stages,
        line["b"],
    )
    if len(line) > _STEP_KEYS:
        for key in ("u", "o", "window", "m"):
            if key in line:
                text += ',"%s":%s' % (key, _as_text(line[key]))
    return text + "}"


class Writer:
    """One process's record file. `claim` names the file when the first line is due, so that nobody shares one."""

    def __init__(
        self,
        path: str,
        limit_bytes: int = LIMIT_BYTES,
        flush_every_s: float = FLUSH_EVERY_S,
        claim: Optional[Callable[[], str]] = None,
    ) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self.lines: Deque[Dict[str, Any]] = deque(maxlen=MOST_WAITING)
        self.before_flush: List[Callable[[], None]] = []
        self.broken = False
        self.dropped = 0
        self._claim = claim
        self._pid = os.getpid()
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._stopping = False
        self._flush_every_s = flush_every_s
        self.thread: Optional[threading.Thread] = None

    @property
    def begun(self) -> bool:
        """Something has been trained here, so there is a file."""
        return self.thread is not None

    def put(self, line: Dict[str, Any]) -> None:
        """Takes a line. Nothing reaches the disk before `begin`."""
        if not self.broken:
            if len(self.lines) == MOST_WAITING:
                self.dropped += 1
            self.lines.append(line)

    def begin(self) -> None:
        """Something is being trained: from now on lines are written. A process that never trains leaves no file."""
        if self.thread is not None or self.broken or self._pid != os.getpid():
            return
        try:
            self.thread = threads.begin(self._run, "stallwise-writer")
        except RuntimeError as error:  # no more threads for this user
            self._give_up(error)

    def _run(self) -> None:
        self.flush()  # at once: a job that dies young leaves a file that says it lived
        while not self._stopping:
            self._wake.wait(self._flush_every_s)
            self.flush()

    def flush(self) -> None:
        """Writes what is waiting. Never raises: a full disk ends the recording, not the job."""
        if self.broken or self._pid != os.getpid():
            return
        with self._lock:
            try:
                for call in self.before_flush:
                    call()
                batch = []
                while self.lines:
                    line = self.lines.popleft()
                    batch.append(_step_as_text(line) if "s" in line else _as_text(line))
                if self.dropped:
                    batch.append('{"k":"lost","lines":%d}' % self.dropped)
                    self.dropped = 0
                if batch:
                    self._write(("\n".join(batch) + "\n").encode("utf-8", "replace"))
            except Exception as error:
                self._give_up(error)

    def _write(self, data: bytes) -> None:
        if self._claim is not None:
            self.path, self._claim = self._claim(), None
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            size = os.fstat(file).st_size
            if size and size + len(data) > self.limit_bytes:
                os.replace(self.path, self.path + ".old")
                fresh = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
                os.close(file)
                file = fresh
            while data:
                data = data[os.write(file, data) :]
        finally:
            os.close(file)

    def _give_up(self, error: Exception) -> None:
        self.broken = True
        self.lines.clear()
        say("recording stopped (%s: %s); the job goes on" % (type(error).__name__, error))

    def close(self) -> None:
        """Flushes and lets the thread end."""
        self._stopping = True
        self._wake.set()
        if self.thread is None:  # nothing was ever trained here
            return
        self.flush()


def claim(folder: str, names: List[str]) -> str:
    """The first of these files that is not another process's; it is ours from now on."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for name in names[:-1]:
        path = os.path.join(folder, name)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
            return path
        except FileExistsError:
            continue
    return os.path.join(folder, names[-1])
