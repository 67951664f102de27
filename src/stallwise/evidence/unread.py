"""What was read and not understood: numbers without a name, error lines without a meaning, files without a fact.

Ignorance is evidence too: a verdict of health must show how much of the input it rests on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from stallwise.evidence.fact import Source


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """A line that calls itself an error or a warning and that no signature knows."""

    text: str
    source: Source
    level: str = "error"
    times: int = 1


@dataclass(frozen=True, slots=True)
class Unread:
    """What one file held that nobody could name."""

    file: str
    numbers_seen: int = 0
    numbers_named: int = 0
    keys: tuple[str, ...] = ()  # keys without a name, most frequent first
    error_lines: tuple[ErrorLine, ...] = ()
    without_fact: bool = False  # the file was read and gave nothing at all
    cells_seen: int = 0  # numbers that stand in tables


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """The same over all files."""

    files_without_fact: tuple[str, ...] = ()
    error_lines: tuple[ErrorLine, ...] = ()
    numbers_seen: int = 0
    numbers_named: int = 0
    keys: tuple[str, ...] = field(default=())

    @property
    def named_share(self) -> float:
        """Share of the numbers that have a meaning; NaN where there are none."""
        return self.numbers_named / self.numbers_seen if self.numbers_seen else float("nan")


MOST_KEYS = 12  # unknown keys worth showing


def not_understood(unread: Iterable[Unread]) -> NotUnderstood:
    """Adds up what the readers of all files left over."""
    parts = list(unread)
    keys = dict.fromkeys(key for part in parts for key in part.keys)
    return NotUnderstood(
        tuple(dict.fromkeys(part.file for part in parts if part.without_fact)),
        tuple(line for part in parts for line in part.error_lines),
        sum(part.numbers_seen for part in parts),
        sum(part.numbers_named for part in parts),
        tuple(keys)[:MOST_KEYS],
    )
