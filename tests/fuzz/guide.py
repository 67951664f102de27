"""Which inputs are worth damaging further: those that reached a line of the package, or an outcome, that no other had.

Lines are watched by Python's own monitoring (3.12 and later), which tells each line once and then costs nothing; before
that outcomes alone guide.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Hashable
from types import CodeType
from typing import Any

MOST_KEPT = 4000
LARGEST_BYTES = 60_000
FURTHER = 0.5  # of the cases: one of these is damaged instead of a seed
_TOOL = 3  # an identity that no debugger, profiler or coverage tool claims


class Guide:
    """The inputs that were kept, and what has been reached."""

    def __init__(self, package: str = "/stallwise/") -> None:
        self.package = package
        self.kept: list[tuple[str, bytes]] = []
        self.lines = 0
        self._outcomes: set[Hashable] = set()
        self._before = 0

    def watch(self) -> None:
        """From here on every line is told when it is first reached."""
        monitoring: Any = getattr(sys, "monitoring", None)
        if monitoring is None:
            return
        self._disable = monitoring.DISABLE
        monitoring.use_tool_id(_TOOL, "fuzz")
        monitoring.register_callback(_TOOL, monitoring.events.LINE, self._reached)
        monitoring.set_events(_TOOL, monitoring.events.LINE)

    def _reached(self, code: CodeType, line: int) -> Any:
        self.lines += self.package in code.co_filename
        return self._disable

    def picked(self, r: random.Random) -> tuple[str, bytes] | None:
        """One of the kept ones, now and then; the latest are the likeliest to lead on."""
        if not self.kept or r.random() > FURTHER:
            return None
        return self.kept[-1 - int(len(self.kept) * r.random() ** 2)]

    def told(self, name: str, data: bytes, outcome: Hashable) -> bool:
        """Keeps the input if it was the first to come so far."""
        fresh = self.lines > self._before or outcome not in self._outcomes
        self._before = self.lines
        self._outcomes.add(outcome)
        if not fresh or len(data) > LARGEST_BYTES:
            return False
        self.kept.append((name, data))
        if len(self.kept) > MOST_KEPT:
            del self.kept[: MOST_KEPT // 4]
        return True
