"""What comes through a pipe: read once, up to a limit, and never waited for without end."""

from __future__ import annotations

import os
import select
from pathlib import Path
from typing import IO

from stallwise.errors import UnreadableInput

MOST_BYTES = 2 << 30
SILENCE_S = 20.0  # without one byte: nobody writes
BLOCK_BYTES = 1 << 20


def limited(stream: IO[bytes], name: str) -> bytes:
    """All that comes."""
    found = bytearray()
    while block := stream.read(BLOCK_BYTES):
        found += block
        _check(len(found), name)
    return bytes(found)


def from_pipe(path: Path) -> bytes:
    """A named pipe or `<(command)`; a pipe that nobody writes into is given up."""
    found = bytearray()
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise UnreadableInput(f"cannot open {path}: {error.strerror}") from error
    try:
        waiting = select.poll()
        waiting.register(handle, select.POLLIN)
        while True:
            if not waiting.poll(SILENCE_S * 1000):
                raise UnreadableInput(f"nothing comes out of {path}", hint="is anybody writing into it?")
            block = os.read(handle, BLOCK_BYTES)
            if not block:
                return bytes(found)
            found += block
            _check(len(found), str(path))
    except OSError as error:
        raise UnreadableInput(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(handle)


def _check(size_bytes: int, name: str) -> None:
    if size_bytes > MOST_BYTES:
        raise UnreadableInput(f"{name} sends more than {MOST_BYTES >> 30} GiB", hint="write it into a file first")
