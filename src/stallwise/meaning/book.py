"""The book of signatures: every message that somebody has judged, from `signatures/*.toml`.

An entry has the words that must stand in a line, an expression with typed slots, a role, a source, and lines that fit and
lines that do not. Messages that are only known are in `known.py`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from stallwise.evidence.event import Role

SHORTEST = 4  # characters of an anchor: shorter ones stand in every second line


@dataclass(frozen=True, slots=True)
class Signature:
    """One message of one program."""

    id: str
    event: str
    anchors: tuple[str, ...]  # lower case; one of them must stand in the line
    pattern: str
    role: Role
    component: str
    level: str
    source: str
    slots: dict[str, str] = field(
        default_factory=dict
    )  # name of a group: int, number, bytes, seconds, ms, or table of codes
    feeds: str = ""  # quantity that takes the message as its text
    facts: dict[str, str] = field(default_factory=dict)  # quantity: slot
    unless: str = ""  # words that make it something else
    cased: bool = False  # capitals count
    samples: tuple[str, ...] = ()
    not_samples: tuple[str, ...] = ()
    every: bool = False  # all occurrences count, not the first and last ones
    apart: tuple[str, ...] = ()  # slots: of each combination of their words the first and last occurrences count

    @property
    def starts_line(self) -> bool:
        """Asks for the start of the message, which a prefix may hide."""
        return self.pattern.startswith("^")

    def fits(self, text: str) -> re.Match[str] | None:
        """Where the message stands in this line, with its slots."""
        found = compiled(self.pattern, self.cased).search(text)
        return None if found is None or self.refuses(text) else found

    def kind_of(self, match: re.Match[str]) -> tuple[str, ...]:
        """What occurrences that are counted together have in common."""
        return (self.id, *(match[slot] or "" for slot in self.apart))

    def refuses(self, text: str) -> bool:
        """Words stand there that make it something else."""
        return bool(self.unless) and compiled(self.unless, False).search(text) is not None


@cache
def compiled(pattern: str, cased: bool) -> re.Pattern[str]:
    """Made when a line first needs it: most lines of most logs need few."""
    return re.compile(pattern, 0 if cased else re.IGNORECASE)


@cache
def book() -> tuple[Signature, ...]:
    """Every signature of every file."""
    folder = files("stallwise.meaning").joinpath("signatures")
    names = sorted(p.name for p in folder.iterdir() if p.name.endswith(".toml"))
    return tuple(
        signature
        for name in names
        for signature in signatures_in(name, folder.joinpath(name).read_text(encoding="utf-8"))
    )


def signatures_in(name: str, text: str) -> Iterator[Signature]:
    """The entries of one file; what its head says holds for all of them."""
    document: dict[str, Any] = tomllib.loads(text)
    defaults = document.get("book", {})
    for row in document["signature"]:
        entry = {**defaults, **row}
        anchors = entry["anchor"] if isinstance(entry["anchor"], list) else [entry["anchor"]]
        pattern = entry.get("match") or "|".join(map(re.escape, anchors))
        yield Signature(
            id=entry["id"],
            event=entry["event"],
            anchors=tuple(a.lower() for a in anchors),
            pattern=pattern,
            cased=entry.get("case", False),
            role=Role(entry["role"]),
            component=entry.get("component", name.removesuffix(".toml")),
            level=entry.get("level", ""),
            source=entry["source"],
            slots=entry.get("slots", {}),
            feeds=entry.get("feeds", ""),
            facts=entry.get("facts", {}),
            unless=entry.get("unless", ""),
            samples=tuple(entry.get("sample", ())),
            not_samples=tuple(entry.get("not_sample", ())),
            every=entry.get("every", False),
            apart=tuple(entry.get("apart", ())),
        )
