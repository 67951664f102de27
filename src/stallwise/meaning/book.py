"""The book of signatures: every message the program understands, from the files in `signatures/`.

`*.toml` hold what somebody has judged, with role, slots, source and samples. `*.tsv` hold messages that are only known:
a distinctive piece of the text, how loud it is, and which program and release prints it.
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
_ANYWHERE = re.compile("")


@dataclass(frozen=True, slots=True)
class Signature:
    """One message of one program."""

    id: str
    event: str
    anchors: tuple[str, ...]  # lower case; one of them must stand in the line
    match: re.Pattern[str]
    role: Role
    component: str
    level: str
    source: str
    slots: dict[str, str] = field(default_factory=dict)  # name of a group: int, number, bytes, seconds, ms, or table of codes
    feeds: str = ""  # quantity that takes the message as its text
    facts: dict[str, str] = field(default_factory=dict)  # quantity: slot
    unless: re.Pattern[str] | None = None  # words that make it something else
    samples: tuple[str, ...] = ()
    not_samples: tuple[str, ...] = ()
    every: bool = False  # all occurrences count, not the first and last ones


@cache
def book() -> tuple[Signature, ...]:
    """Every signature of every file, judged ones first."""
    folder = files("stallwise.meaning").joinpath("signatures")
    names = sorted(p.name for p in folder.iterdir())
    found: list[Signature] = []
    for name in names:
        if name.endswith(".toml"):
            found += _judged(name, tomllib.loads(folder.joinpath(name).read_text(encoding="utf-8")))
    for name in names:
        if name.endswith(".tsv"):
            found += _known(name, folder.joinpath(name).read_text(encoding="utf-8"))
    return tuple(found)


def _judged(name: str, document: dict[str, Any]) -> Iterator[Signature]:
    defaults = document.get("book", {})
    for row in document["signature"]:
        entry = {**defaults, **row}
        anchors = entry["anchor"] if isinstance(entry["anchor"], list) else [entry["anchor"]]
        pattern = entry.get("match") or "|".join(map(re.escape, anchors))
        yield Signature(
            id=entry["id"],
            event=entry["event"],
            anchors=tuple(a.lower() for a in anchors),
            match=re.compile(pattern, 0 if entry.get("case") else re.IGNORECASE),
            role=Role(entry["role"]),
            component=entry.get("component", name.removesuffix(".toml")),
            level=entry.get("level", ""),
            source=entry["source"],
            slots=entry.get("slots", {}),
            feeds=entry.get("feeds", ""),
            facts=entry.get("facts", {}),
            unless=re.compile(entry["unless"], re.IGNORECASE) if "unless" in entry else None,
            samples=tuple(entry.get("sample", ())),
            not_samples=tuple(entry.get("not_sample", ())),
            every=entry.get("every", False),
        )


def _known(name: str, text: str) -> Iterator[Signature]:
    """Rows of anchor, level, file and releases, under a first line that names the program and its source."""
    head, *rows = text.splitlines()
    component, source = head.removeprefix("# ").split("\t")[:2]
    for number, row in enumerate(rows, 2):
        anchor, level, place, releases = row.split("\t")
        yield Signature(
            id=f"{name.removesuffix('.tsv')}.{number}",
            event="known-message",
            anchors=(anchor,),
            match=_ANYWHERE,
            role=Role.KNOWN,
            component=component,
            level=level,
            source=f"{source} {place} {releases}".strip(),
        )
