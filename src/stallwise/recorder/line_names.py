"""Numbers for the lines that stacks pass through: a line is spelled out once, a stack is a list of numbers."""

from __future__ import annotations

import os
import sysconfig
from collections import deque
from typing import Any, Deque, Dict, Iterator, Tuple

from stallwise.recorder import schema
from stallwise.recorder.error_origin import OURS
from stallwise.recorder.frames import Place

GENERATED = "/torchinductor_", "/.triton/"  # caches of code that nobody wrote
_STANDARD = sysconfig.get_paths().get("stdlib", "") + os.sep


class LineNames:
    """Lines by the instruction that a frame stands at."""

    def __init__(self) -> None:
        self._at: Dict[Tuple[int, int], int] = {}  # instructions: their lines
        self._lines: Dict[str, int] = {}
        self._codes: Dict[int, Tuple[Any, str]] = {}  # held, so that no other code gets its address; and its file
        self._new: Deque[Dict[str, Any]] = deque()
        self._here = os.getcwd() + os.sep

    def number(self, place: Place) -> int:
        """Of the line at which a frame stands."""
        code, instruction = place
        at = id(code), instruction
        line = self._at.get(at)
        if line is None:
            line = self._at[at] = self._line(code, _line_of(code, instruction))
        return line

    def take(self) -> Iterator[Dict[str, Any]]:
        """What was spelled out since the last time, to be written."""
        while self._new:
            yield self._new.popleft()

    def _line(self, code: Any, number: int) -> int:
        known = self._codes.get(id(code))
        if known is None:
            known = self._codes[id(code)] = code, self._short(code.co_filename)
        text = "%s:%d %s" % (known[1], number, getattr(code, "co_qualname", code.co_name))
        line = self._lines.get(text)
        if line is None:
            line = self._lines[text] = len(self._lines)
            self._new.append({"k": "line", "id": line, "at": text})
        return line

    def _short(self, file: str) -> str:
        for place in ("site-packages/", "dist-packages/"):
            if place in file:
                return schema.LIBRARY + file.rpartition(place)[2]
        if any(place in file for place in GENERATED):
            return schema.LIBRARY + "torch/_inductor/" + os.path.basename(file)
        if file.startswith((_STANDARD, OURS, "<frozen")):
            return schema.LIBRARY + os.sep.join(file.split(os.sep)[-2:])
        if file.startswith(self._here):
            return file[len(self._here) :]
        return os.sep.join(file.split(os.sep)[-2:])


def _line_of(code: Any, instruction: int) -> int:
    """In its file; before Python 3.10 the function's first."""
    spans = code.co_lines() if hasattr(code, "co_lines") else ()
    return next(
        (int(line) for begin, end, line in spans if begin <= instruction < end and line), int(code.co_firstlineno)
    )
