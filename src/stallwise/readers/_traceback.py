"""Python tracebacks in logs: the frames, and which phase of a program they belong to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from stallwise.readers._patterns import document, patterns


class Frame(NamedTuple):
    """One line of a traceback."""

    file: str
    function: str
    code: str = ""


_P = patterns("stacks")


@cache
def _phases() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """In order: the narrow ones first. A phase holds when any frame matches its file, function or code (phases.toml)."""
    return tuple((row["name"], re.compile(row["frames"], re.IGNORECASE)) for row in document("phases")["phase"])


def frames_before(lines: Sequence[str], end: int, most: int = 120) -> list[Frame]:
    """The frames of the traceback that ends just before line `end` (0-based), outermost first."""
    found: list[Frame] = []
    for at in range(end - 1, max(-1, end - most), -1):
        line = _P["prefix"].sub("", lines[at]).strip()
        if match := _P["frame"].search(line):
            below = (_P["prefix"].sub("", x).strip() for x in lines[at + 1 : end])
            following = next(filter(None, below), "")
            code = "" if _P["frame"].search(following) else following
            found.append(Frame(match["file"], match["function"], code))
        elif line.startswith("Traceback (most recent call last)"):
            break
    return found[::-1]


def phase_of(frames: Sequence[Frame]) -> str:
    """What the program was doing: the narrowest phase any frame shows."""
    texts = [f"{f.file} {f.function} {f.code}" for f in frames]
    for phase, pattern in _phases():
        if any(pattern.search(text) for text in texts):
            return phase
    return ""


def place_of(frames: Sequence[Frame]) -> str:
    """The innermost line of the user's own code, or the innermost at all."""
    if not frames:
        return ""
    frame = next((f for f in reversed(frames) if is_own(f.file)), frames[-1])
    return f"{frame.file.rsplit('/', 1)[-1]} {frame.function}" + (f": {frame.code}" if frame.code else "")


def is_own(file: str) -> bool:
    """Whether a frame's file is the user's, and not a library's."""
    return _P["not_own"].search(file) is None
