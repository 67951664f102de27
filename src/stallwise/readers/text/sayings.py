"""What people state without a number, by the tables of words: complaints (symptoms.toml) and statements (said.toml)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from stallwise.readers.text.groups import Line, affirmed, clauses, line_of, pattern_of, plain, sayable, says
from stallwise.readers.text.words import book


class Said(NamedTuple):
    """A statement without a number."""

    quantity: str
    value: str
    text: str


class Saying(NamedTuple):
    """A row of one of the tables, and the ways to say it."""

    name: str
    lines: tuple[Line, ...]  # in one clause
    phrases: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    row: dict[str, Any]


@cache
def sayings(table: str) -> tuple[Saying, ...]:
    """Every row of a table, the narrow ones first."""
    data = book(f"{table}.toml")
    rows = next(data[key] for key in ("symptom", "said") if key in data)
    return tuple(_saying(row, ordered="symptom" not in data) for row in rows)


def _saying(row: dict[str, Any], *, ordered: bool) -> Saying:
    lines = tuple(line_of(line, ordered) for line in row.get("words", ()))
    words = "|".join(re.escape(p) for p in sorted(row.get("phrases", ()), key=len, reverse=True))
    phrases = re.compile(rf"(?<![\w-])(?:{words})(?![\w])") if words else None
    unless = pattern_of(row["unless"]) if "unless" in row else None
    return Saying(str(row.get("name", row.get("value"))), lines, phrases, unless, row)


def _part(lines: Iterable[Line], parts: Sequence[str], whole: str) -> str | None:
    """The first part of a text that says one of the lines."""
    heard = sayable(lines, whole)
    return next((part for part in parts if any(says(line, part) for line in heard)), None) if heard else None


def symptom_in(text: str) -> str:
    """The name of the symptom that this text complains of, the narrowest first; empty for none."""
    lowered = plain(text)
    for symptom in sayings("symptoms"):
        parts = clauses(lowered) if symptom.row.get("clause") else [lowered]
        turned = symptom.unless is not None and symptom.unless.search(lowered) is not None
        if not turned and _part(symptom.lines, parts, lowered) is not None:
            return symptom.name
    return ""


def order_of(name: str) -> int:
    """How narrow a symptom is: its place in the table."""
    return next((at for at, one in enumerate(sayings("symptoms")) if one.name == name), len(sayings("symptoms")))


def said_in(text: str) -> Iterator[Said]:
    """Statements, each quantity once; a negation before a negatable one turns it around."""
    lowered = plain(text)
    parts = clauses(lowered)
    seen: set[str] = set()
    for saying in sayings("said"):
        quantity = saying.row["quantity"]
        if quantity in seen:
            continue
        match = saying.phrases.search(lowered) if saying.phrases else None
        if match is not None:
            denied = not affirmed(match, lowered)
            if denied and saying.row.get("deniable"):
                continue
            value = "no" if saying.row.get("negatable") and denied else saying.name
            yield Said(quantity, value, match[0])
        elif (part := _part(saying.lines, parts, lowered)) is not None:
            yield Said(quantity, saying.name, part.strip())
        else:
            continue
        seen.add(quantity)
