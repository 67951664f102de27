"""What a complaint itself calls the reason (blamed.toml): a thing, and a word that blames it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from stallwise.meaning.groups import Line, clauses, line_of, plain, sayable, says
from stallwise.meaning.words import book

QUANTITY = "blamed"
_SENTENCE = re.compile(r"[;.?!](?=\s|$)")


class Thing(NamedTuple):
    """Something that people hold to be the reason, and the ways to say so."""

    name: str
    lines: tuple[Line, ...]  # in one clause
    across: tuple[Line, ...]  # in one sentence


@cache
def things() -> tuple[Thing, ...]:
    """All of them, the narrow ones first."""
    table = book("blamed.toml")
    return tuple(
        Thing(
            row["name"],
            tuple(_lines(row, table["effects"], table["blames"])),
            tuple(line_of(line, ordered=True) for line in row.get("sentences", ())),
        )
        for row in table["thing"]
    )


def _lines(row: dict[str, Any], effects: str, blames: str) -> Iterator[Line]:
    if "things" in row:
        yield line_of((row["things"], effects), ordered=True)
        yield line_of((blames, row["things"]), ordered=True)
    for line in row.get("words", ()):
        yield line_of(line, ordered=True)


def blamed_in(text: str) -> tuple[str, str] | None:
    """The thing that a text blames first by the order of the table, and the clause that does."""
    lowered = plain(text)
    parts, whole = clauses(lowered), _SENTENCE.split(lowered)
    for thing in things():
        for lines, texts in ((thing.lines, parts), (thing.across, whole)):
            heard = sayable(lines, lowered)
            if found := next((part for part in texts if any(says(line, part) for line in heard)), None):
                return thing.name, found.strip()
    return None
