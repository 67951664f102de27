"""Lines of programs as data knows them: words that must stand in a line, an expression with typed slots, words that forbid it.

What the books of messages and of gauges have in common: how an entry is written, found in a text and read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, TypeVar

from stallwise.evidence.number_columns import TOKEN
from stallwise.evidence.skeletons import LONGEST, Skeletons, asks_for_digits, loosened
from stallwise.late import np
from stallwise.readers.text.slots import typed

Value = float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """What an entry looks for."""

    anchors: tuple[str, ...]  # lower case; one of them must stand in the line
    pattern: str
    slots: dict[str, str]  # name of a group: int, number, bytes, a unit, or table of codes
    unless: str = ""  # words that make it something else
    cased: bool = False  # capitals count
    samples: tuple[str, ...] = ()

    @property
    def ready(self) -> re.Pattern[str]:
        """The expression, made when a line first needs it."""
        return compiled(self.pattern, self.cased)

    def fits(self, text: str) -> re.Match[str] | None:
        """Where it stands in this line."""
        found = self.ready.search(text)
        return None if found is None or self.refuses(text) else found

    def refuses(self, text: str) -> bool:
        """Words stand there that make it something else."""
        return bool(self.unless) and compiled(self.unless, self.cased).search(text) is not None

    def may(self, *texts: str) -> re.Match[str] | None:
        """Lines of a skeleton differ in digits alone: it fits none of them if it fits none with other digits."""
        loose = compiled(loosened(self.pattern), self.cased)
        return next((found for text in texts if (found := loose.search(text)) is not None), None)

    @property
    def wants_digits(self) -> bool:
        """Lines of one skeleton may differ in whether it fits."""
        return asks_for_digits(self.pattern + self.unless)

    def holding(self, text: Skeletons, skeleton: int) -> list[int]:
        """The lines of a skeleton that it fits: asked once where their digits do not matter, and of equal numbers once."""
        members, sample = text.members(skeleton), first_line(text, skeleton)
        if not self.wants_digits:
            return members if self.fits(sample) else []
        loose = self.may(sample)
        if loose is None:
            return []
        slots = [slot for slot, number in enumerate(TOKEN.finditer(sample)) if number.end() > loose.start()]
        alone = len(slots) == 1 and not asks_for_digits(self.unless)
        column = text.columns(skeleton, slots) if alone else None
        if column is None:
            return [at for at in members if self.fits(text.lines[at][:LONGEST])]
        _, first, group = np.unique(column[:, 0], return_index=True, return_inverse=True)
        fits = np.array([self.fits(text.lines[members[at]][:LONGEST]) is not None for at in first.tolist()])
        return [members[at] for at in np.flatnonzero(fits[group]).tolist()]

    def values_in(self, match: re.Match[str]) -> Iterator[tuple[str, str, Value]]:
        """Slots with their type and value. An expression may need one slot in two places: size and size_."""
        for raw, written in match.groupdict().items():
            name = raw.rstrip("_")
            kind = self.slots.get(name, "text")
            if written is not None and (value := typed(kind, written.strip())) is not None:
                yield name, kind, value


Entry = TypeVar("Entry", bound=Expression)


@cache
def compiled(pattern: str, cased: bool) -> re.Pattern[str]:
    """Made when a line first needs it: most lines of most logs need few."""
    return re.compile(pattern, 0 if cased else re.IGNORECASE)


def entry_of(kind: type[Entry], row: dict[str, Any]) -> Entry:
    """An expression of some kind from a row of a table: what it looks for, and the row's own fields as they are written."""
    anchors = row["anchor"] if isinstance(row["anchor"], list) else [row["anchor"]]
    known = {field.name for field in fields(kind)} & row.keys()
    own: dict[str, Any] = {name: tuple(row[name]) if isinstance(row[name], list) else row[name] for name in known}
    return kind(
        **{"slots": {}, **own},
        anchors=tuple(a.lower() for a in anchors),
        pattern=row.get("match") or "|".join(map(re.escape, anchors)),
        cased=row.get("case", False),
        samples=tuple(row.get("sample", ())),
    )


def first_line(text: Skeletons, skeleton: int) -> str:
    """Of a skeleton, as far as expressions look."""
    return text.lines[text.firsts[skeleton]][:LONGEST]
