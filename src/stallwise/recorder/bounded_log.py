"""A bounded copy of a job's output that keeps its beginning and its end: the error of a chatty job is in its last lines."""

from __future__ import annotations

import os
from typing import List

from stallwise.recorder.line_clock import LineClock

HEAD_BYTES = 32 << 20
TAIL_BYTES = 16 << 20  # at least so much of the end; up to twice as much
WORDS_BYTES = 16 << 10


class BoundedLog:
    """Trouble with it never reaches the job."""

    def __init__(self, path: str, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._path = path
        self._head_bytes, self._tail_bytes = head_bytes, tail_bytes
        self._size = 0
        self._tail_size = 0
        self._left_out = 0
        self._broken = False
        self._words = b""
        self.clock = LineClock()

    @property
    def words(self) -> str:
        """The last lines of all output, as text."""
        return self._words.decode("utf-8", "replace")

    def write(self, data: bytes) -> None:
        """Takes a piece of output."""
        self._words = (self._words + data)[-WORDS_BYTES:]
        self.clock.feed(data)
        if self._broken:
            return
        try:
            head = data[: max(self._head_bytes - self._size, 0)]
            if head:
                self._append(self._path, head)
                self._size += len(head)
            if len(head) < len(data):
                self._to_tail(data[len(head) :])
        except OSError:
            self._broken = True

    def _parts(self) -> List[str]:
        return [self._path + ".older", self._path + ".newest"]

    def _to_tail(self, data: bytes) -> None:
        older, newest = self._parts()
        if self._tail_size >= self._tail_bytes:
            if os.path.exists(older):
                self._left_out += os.path.getsize(older)
            os.replace(newest, older)
            self._tail_size = 0
        self._append(newest, data)
        self._tail_size += len(data)

    def close(self) -> None:
        """One file again: the beginning, what was left out, the end."""
        try:
            parts = [p for p in self._parts() if os.path.exists(p)]
            if self._left_out:
                self._append(self._path, b"\n[stallwise: %d bytes left out here]\n" % self._left_out)
            for part in parts:
                with open(part, "rb") as file:
                    self._append(self._path, file.read())
                os.unlink(part)
        except OSError:
            pass

    @staticmethod
    def _append(path: str, data: bytes) -> None:
        with open(path, "ab", buffering=0) as file:
            file.write(data)
