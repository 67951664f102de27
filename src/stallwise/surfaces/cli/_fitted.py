"""Output as wide as the terminal: long lines go on under their own column. Pipes and JSON get them whole."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from typing import Any, TextIO

from stallwise.terminal import terminal_columns

# What another program reads: never broken.
WHOLE = ("--json", "--md", "--github", "completion", "--template", "--format", "mcp", "--diff", "export")
DEEPEST_SHARE = 0.5  # of the width: a column further right leaves no room for words
NARROWEST = 40
_GAP = re.compile(r"\S(?:  +)(?=\S)")
_COLOR = re.compile(r"\x1b\[[\d;]*m")
_JOINT = re.compile(r"(?<=[/,;=&?_.:-])")  # where a word too long for a line may end

CHOSEN: list[str] = ["auto"]  # what --color asked for


def fit_output(arguments: list[str]) -> None:
    """Wraps what is printed from here on, where somebody looks at it or COLUMNS says how wide it may be."""
    ours = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if any(a in WHOLE for a in ours) or {"-", "--fix"} <= set(ours):  # mended text goes where it is piped to
        return
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        sys.stdout = Fitted(sys.stdout, terminal_columns())


def complaint(text: str) -> str:
    """An error as wide as the terminal."""
    if not sys.stderr.isatty() and not os.environ.get("COLUMNS", "").isdigit():
        return text
    width = max(terminal_columns(), NARROWEST)
    return "\n".join(fitted(line, width) for line in text.split("\n"))


def colored() -> bool:
    """Colours for a terminal; --color, NO_COLOR and FORCE_COLOR decide otherwise, in this order."""
    if CHOSEN[0] != "auto":
        return CHOSEN[0] == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


class Fitted:
    """A stream that breaks lines at words."""

    def __init__(self, stream: TextIO, width: int) -> None:
        self.stream, self.width = stream, max(width, NARROWEST)
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
    """The line in pieces of at most this width, each under the column that it belongs to."""
    if len(_COLOR.sub("", line)) <= width or "\x1b" in _COLOR.sub("", line):
        return line
    start = len(line) - len(line.lstrip())
    columns = [m.end() for m in _GAP.finditer(line) if m.end() <= DEEPEST_SHARE * width]
    indent = max([min(start, int(DEEPEST_SHARE * width)), *columns])
    spare = len(line) - len(_COLOR.sub("", line))  # letters that take no room
    room = width - indent + spare
    pieces = textwrap.wrap(
        " ".join(_jointed(word, room) for word in line[indent:].split(" ")), room, break_long_words=True,
        break_on_hyphens=False, drop_whitespace=True, replace_whitespace=False,
    )  # fmt: skip
    return f"\n{' ' * indent}".join([line[:indent] + pieces[0], *pieces[1:]]) if pieces else line


def _jointed(word: str, room: int) -> str:
    """A word that no line holds, cut at its joints."""
    if len(word) <= room:
        return word
    lines, line = [], ""
    for part in _JOINT.split(word):
        if line and len(line) + len(part) > room:
            lines.append(line)
            line = ""
        line += part
    return " ".join([*lines, line])
