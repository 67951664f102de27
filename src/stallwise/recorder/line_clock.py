"""Steps from what a job prints: a line that comes again and again with a number that counts says when steps ended.

The relay reads the output as it is written, so it knows the time of every line, also of those that name no time themselves.
Only where nothing inside the job showed steps is this believed.
"""

from __future__ import annotations

import re
import statistics
import time
from collections import Counter
from typing import Any, Callable, Dict, List, Optional, Tuple

NUMBER = re.compile(r"(?<![\w.])\d{1,12}(?:\.\d+)?(?:[eE][-+]?\d{1,3})?")
BREAK = re.compile(rb"[\r\n]+")
LONGEST = 400  # characters: longer lines are dumps
MOST_LINES = 200  # of one piece of output: a job that writes more counts on in the next
MOST_SHAPES, MOST_SEEN = 200, 2048
FEWEST = 8  # lines of one shape: fewer may be anything
REGULAR = 0.6  # of the steps between two lines are the usual number of them: a counter, not a measurement

Seen = Tuple[float, List[str]]


class LineClock:
    """Hears pieces of output."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._rest = b""
        self._seen: Dict[str, List[Seen]] = {}

    def feed(self, data: bytes) -> None:
        """A piece of output, just written."""
        t = self._now()
        lines = BREAK.split(self._rest + data)
        self._rest = lines.pop()[-LONGEST:]
        for line in lines[:MOST_LINES]:
            if 0 < len(line) <= LONGEST:
                self._take(t, line.decode("utf-8", "replace"))

    def _take(self, t: float, line: str) -> None:
        numbers = NUMBER.findall(line)
        if not numbers:
            return
        shape = " ".join("".join(c for c in NUMBER.sub("#", line) if c.isascii()).split())
        seen = self._seen.get(shape)
        if seen is None:
            if len(self._seen) >= MOST_SHAPES:
                return
            seen = self._seen[shape] = []
        seen.append((t, numbers))
        if len(seen) > MOST_SEEN:
            del seen[::2]  # the longer it runs, the coarser

    def steps(self) -> Optional[Dict[str, Any]]:
        """The line that counts most often: its shape, the counter's values, and seconds a step up to each; None without one."""
        found = [counted for shape, seen in self._seen.items() if (counted := _counted(shape, seen)) is not None]
        return max(found, key=lambda f: len(f["n"]), default=None)


def _counted(shape: str, seen: List[Seen]) -> Optional[Dict[str, Any]]:
    if len(seen) < FEWEST:
        return None
    for column in range(len(seen[0][1])):
        values = [row[1][column] if column < len(row[1]) else "" for row in seen]
        if not all(value.isdecimal() for value in values):
            continue
        counts = [int(value) for value in values]
        pairs = [(b[0] - a[0], n, n - m) for a, b, m, n in zip(seen, seen[1:], counts, counts[1:]) if n > m]
        if len(pairs) < FEWEST - 1:
            continue
        usual, often = Counter(by for _, _, by in pairs).most_common(1)[0]
        if often < REGULAR * (len(seen) - 1) or statistics.median(t for t, _, _ in pairs) <= 0:
            continue
        regular = [(n, t / by) for t, n, by in pairs if by == usual]
        return {"line": shape[:200], "n": [n for n, _ in regular], "s": [round(s, 9) for _, s in regular]}
    return None
