"""The book of signatures: every message that somebody has judged, from `signatures/*.toml`.

An entry is an expression with a role, a source, and lines that fit and lines that do not. Messages that are only known are in
`known.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from stallwise.evidence.event import Role
from stallwise.readers.text.expressions import Expression, entry_of
from stallwise.readers.text.tables import tables_in
from stallwise.tables import parsed

SHORTEST = 4  # characters of an anchor: shorter ones stand in every second line


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePattern(Expression):
    """One message of one program."""

    id: str
    event: str
    role: Role
    component: str
    level: str
    source: str
    feeds: str = ""  # quantity that takes the message as its text
    facts: dict[str, str] = field(default_factory=dict)  # quantity: slot
    not_samples: tuple[str, ...] = ()
    every: bool = False  # all occurrences count, not the first and last ones
    separate_by: tuple[str, ...] = ()  # slots: of each combination of their words the first and last occurrences count

    @property
    def starts_line(self) -> bool:
        """Asks for the start of the message, which a prefix may hide."""
        return self.pattern.startswith("^")

    def kind_of(self, match: re.Match[str]) -> tuple[str, ...]:
        """What occurrences that are counted together have in common."""
        return (self.id, *(match[slot] or "" for slot in self.separate_by))


@cache
def message_patterns() -> tuple[MessagePattern, ...]:
    """Every signature of every file."""
    return tuple(pattern for name, text in tables_in("messages") for pattern in patterns_in(name, text))


def patterns_in(name: str, text: str) -> Iterator[MessagePattern]:
    """The entries of one file; what its head says holds for all of them."""
    document = parsed(text)
    for row in document["message"]:
        entry = {"component": name, "level": "", **document.get("defaults", {}), **row}
        yield entry_of(
            MessagePattern, {**entry, "role": Role(entry["role"]), "not_samples": entry.get("not_sample", [])}
        )
