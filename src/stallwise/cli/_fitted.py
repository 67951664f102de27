"""Output as wide as the terminal: long lines go on under their own column. Pipes and JSON get them whole."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from typing import Any, TextIO

WHOLE = (
    "--json",
    "--github",
    "completion",
    "--template",
    "--format",
    "mcp",
    "watch",
    "drill",
)  # not prose, or interactive
DEEPEST_SHARE = 0.5  # of the width: a column further right leaves no room for words
_GAP = re.compile(r"\S(?:  +)(?=\S)")
_COLOR = re.compile(r"\x1b\[[\d;]*m")


def fit_output(arguments: list[str]) -> None:
    """Wraps what is printed from here on, where somebody looks at it."""
    if sys.stdout.isatty() and not any(a in WHOLE for a in arguments):
        sys.stdout = Fitted(sys.stdout, shutil.get_terminal_size().columns)


def colored() -> bool:
    """Colours for a terminal; NO_COLOR and FORCE_COLOR decide otherwise, as everywhere."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


class Fitted:
    """A stream that breaks lines at words."""

    def __init__(self, stream: TextIO, width: int) -> None:
        self.stream, self.width = stream, max(width, 40)
        self._begun = ""

    def write(self, text: str) -> int:
        """Whole lines are fitted; what a prompt has begun is passed on as it is."""
        *lines, rest = (self._begun + text).split("\n")
        self._begun = ""
        if lines:
            self.stream.write("".join(f"{fitted(line, self.width)}\n" for line in lines))
        if rest and len(rest) < self.width:
            self._begun = rest
        elif rest:
            self.stream.write(rest)
        return len(text)

    def flush(self) -> None:
        """Passes on what has begun."""
        if self._begun:
            self.stream.write(self._begun)
            self._begun = ""
        self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def fitted(line: str, width: int) -> str:
    """The line in pieces of at most this width where it has words, each under the column that it belongs to."""
    if len(_COLOR.sub("", line)) <= width or "\x1b" in _COLOR.sub("", line):
        return line
    start = len(line) - len(line.lstrip())
    columns = [m.end() for m in _GAP.finditer(line) if m.end() <= DEEPEST_SHARE * width]
    indent = max([start, *columns])
    spare = len(line) - len(_COLOR.sub("", line))  # letters that take no room
    pieces = textwrap.wrap(
        line[indent:], width - indent + spare, break_long_words=False, break_on_hyphens=False, drop_whitespace=True,
        replace_whitespace=False,
    )  # fmt: skip
    return f"\n{' ' * indent}".join([line[:indent] + pieces[0], *pieces[1:]]) if pieces else line
