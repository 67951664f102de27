"""What people state without a number, by the tables of words: complaints (symptoms.toml) and statements (statements.toml)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from stallwise.readers.text.groups import Line, affirmed, clauses, line_of, pattern_of, plain, sayable, says
from stallwise.readers.text.words import word_table


class Statement(NamedTuple):
    """A statement without a number."""

    quantity: str
    value: str
    text: str


class PhraseRow(NamedTuple):
    """A row of one of the tables, and the ways to say it."""

    name: str
    lines: tuple[Line, ...]  # in one clause
    phrases: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    row: dict[str, Any]


@cache
def phrase_table(table: str) -> tuple[PhraseRow, ...]:
    """Every row of a table, the narrow ones first."""
    data = word_table(f"{table}.toml")
    rows = next(data[key] for key in ("symptom", "statement") if key in data)
    return tuple(_phrase_row(row, ordered="symptom" not in data) for row in rows)


def _phrase_row(row: dict[str, Any], *, ordered: bool) -> PhraseRow:
    lines = tuple(line_of(line, ordered) for line in row.get("words", ()))
    words = "|".join(re.escape(p) for p in sorted(row.get("phrases", ()), key=len, reverse=True))
    phrases = re.compile(rf"(?<![\w-])(?:{words})(?![\w])") if words else None
    unless = pattern_of(row["unless"]) if "unless" in row else None
    return PhraseRow(str(row.get("name", row.get("value"))), lines, phrases, unless, row)


def _part(lines: Iterable[Line], parts: Sequence[str], whole: str) -> str | None:
    """The first part of a text that says one of the lines."""
    sayable_lines = sayable(lines, whole)
    return (
        next((part for part in parts if any(says(line, part) for line in sayable_lines)), None)
        if sayable_lines
        else None
    )


def symptom_in(text: str) -> str:
    """The name of the symptom that this text complains of, the narrowest first; empty for none."""
    lowered = plain(text)
    for symptom in phrase_table("symptoms"):
        parts = clauses(lowered) if symptom.row.get("clause") else [lowered]
        turned = symptom.unless is not None and symptom.unless.search(lowered) is not None
        if not turned and _part(symptom.lines, parts, lowered) is not None:
            return symptom.name
    return ""


def order_of(name: str) -> int:
    """How narrow a symptom is: its place in the table."""
    return next(
        (at for at, one in enumerate(phrase_table("symptoms")) if one.name == name), len(phrase_table("symptoms"))
    )


def statements_in(text: str) -> Iterator[Statement]:
    """Statements, each quantity once; a negation before a negatable one turns it around."""
    lowered = plain(text)
    parts = clauses(lowered)
    seen: set[str] = set()
    for row in phrase_table("statements"):
        quantity = row.row["quantity"]
        if quantity in seen:
            continue
        match = row.phrases.search(lowered) if row.phrases else None
        if match is not None:
            denied = not affirmed(match, lowered)
            if denied and row.row.get("deniable"):
                continue
            value = "no" if row.row.get("negatable") and denied else row.name
            yield Statement(quantity, value, match[0])
        elif (part := _part(row.lines, parts, lowered)) is not None:
            yield Statement(quantity, row.name, part.strip())
        else:
            continue
        seen.add(quantity)
