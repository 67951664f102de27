"""Standard streams that fail in order: a reader that has left, a full disk, a stream that was closed before the start."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from stallwise.errors import StallwiseError


class Output:
    """Standard output. A reader that has left (`| head -1`) ends the printing, not the work: the exit code stays the answer's."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.unread = stream, False
        self._failure: StallwiseError | None = None  # told again at every call: a library may catch the first

    def write(self, text: str) -> int:
        """As the stream does; nothing where nobody reads any more."""
        self._attempt(lambda: self.stream.write(text))
        return len(text)

    def flush(self) -> None:
        """What is left in the buffer."""
        self._attempt(self.stream.flush)

    def _attempt(self, action: Callable[[], object]) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            action()
        except BrokenPipeError:
            self.unread = True
            _to_nowhere(self.stream)
        except OSError as error:
            _to_nowhere(self.stream)
            self._failure = StallwiseError(
                f"cannot write the answer: {error.strerror}", hint="make room there, or send it elsewhere"
            )
            raise self._failure from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Remarks:
    """Standard error. What stands beside the answer never stops it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Or not."""
        try:
            return self.stream.write(text)
        except OSError:
            _to_nowhere(self.stream)
            return len(text)

    def flush(self) -> None:
        """Or not."""
        try:
            self.stream.flush()
        except OSError:
            _to_nowhere(self.stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Wraps both streams; one that the caller closed (`>&-`) leads nowhere, and no file of ours can take its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115  # lives as long as the process
    for stream in (sys.stdout, sys.stderr):  # a name that is no text is shown with its bytes, never an error
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    plain = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = Output(sys.stdout), Remarks(sys.stderr)
    try:
        yield
    finally:  # the interpreter flushes them once more when it ends; what failed leads nowhere by now
        sys.stdout, sys.stderr = plain


def reader_left() -> bool:
    """Whether standard output leads to a pipe that nobody reads any more: a loop that only prints can end."""
    return bool(getattr(sys.stdout, "unread", False))


def _to_nowhere(stream: TextIO) -> None:
    """The descriptor leads to nothing from here on: what is still in buffers is dropped without an error at exit."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError, AttributeError):  # no descriptor: a stream of tests or notebooks
        return
