"""Appends lines to this rank's own file from a background thread: crash-safe, bounded, silent when the disk is not.

The training thread only appends to a deque (about 50 ns). The thread wakes twice a second, so a kill loses at most the
last half second. Each batch of lines is one write to a file opened for appending: a crash can tear only the last line.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import deque
from typing import Any, Deque, Dict, Optional

FLUSH_EVERY_S = 0.5
LIMIT_BYTES = 64 << 20  # a year of steps at one line a second is about 6 GB; two segments of this keep the recent days


class Writer:
    """One rank's record file."""

    def __init__(self, path: str, limit_bytes: int = LIMIT_BYTES, flush_every_s: float = FLUSH_EVERY_S) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self.lines: Deque[Dict[str, Any]] = deque(maxlen=100_000)  # bounded even if the disk stalls for hours
        self.broken = False
        self._file: Optional[int] = None
        self._size = 0
        self._pid = os.getpid()
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._stopping = False
        self._flush_every_s = flush_every_s
        self._thread: Optional[threading.Thread] = None

    def put(self, line: Dict[str, Any]) -> None:
        """Takes a line. Nothing reaches the disk before `begin`."""
        if not self.broken and self._pid == os.getpid():  # a forked loader worker must not write its parent's record
            self.lines.append(line)

    def begin(self) -> None:
        """Something is being trained: from now on lines are written. A process that never trains leaves no file."""
        if self._thread is None and not self.broken and self._pid == os.getpid():
            self._thread = threading.Thread(target=self._run, name="stallwise-writer", daemon=True)
            self._thread.start()

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
                batch = []
                while self.lines:
                    batch.append(json.dumps(self.lines.popleft(), separators=(",", ":"), default=str))
                if batch:
                    self._write(("\n".join(batch) + "\n").encode("utf-8", "replace"))
            except Exception as error:
                self._give_up(error)

    def _write(self, data: bytes) -> None:
        if self._file is None:
            os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            self._size = os.fstat(self._file).st_size
        elif self._size + len(data) > self.limit_bytes:
            os.close(self._file)
            os.replace(self.path, self.path + ".old")
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            self._size = 0
        while data:
            written = os.write(self._file, data)
            self._size += written
            data = data[written:]

    def _give_up(self, error: Exception) -> None:
        self.broken = True
        self.lines.clear()
        try:
            sys.stderr.write("stallwise: recording stopped (%s: %s); the job goes on\n" % (type(error).__name__, error))
        except Exception:
            pass

    def close(self) -> None:
        """Flushes and lets the thread end."""
        self._stopping = True
        self._wake.set()
        if self._thread is None:  # nothing was ever trained here
            return
        self.flush()
        if self._file is not None and self._pid == os.getpid():
            try:
                os.close(self._file)
            except OSError:
                pass
            self._file = None
