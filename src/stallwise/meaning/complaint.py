"""Symptoms in people's own words (symptoms.toml)."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from stallwise.meaning.groups import Line, clauses, line_of, pattern_of, plain, says
from stallwise.meaning.words import book


class _Symptom(NamedTuple):
    name: str
    lines: tuple[Line, ...]
    in_one_clause: bool
    unless: re.Pattern[str] | None


@cache
def _symptoms() -> tuple[_Symptom, ...]:
    return tuple(
        _Symptom(
            row["name"],
            tuple(line_of(line) for line in row["words"]),
            row.get("clause", False),
            pattern_of(row["unless"]) if "unless" in row else None,
        )
        for row in book("symptoms.toml")["symptom"]
    )


def symptom_in(text: str) -> str:
    """The name of the symptom that this text complains of, the narrowest first; empty for none."""
    lowered = plain(text)
    for symptom in _symptoms():
        if symptom.unless is not None and symptom.unless.search(lowered):
            continue
        parts = clauses(lowered) if symptom.in_one_clause else [lowered]
        if any(says(line, part) for line in symptom.lines for part in parts):
            return symptom.name
    return ""


def order_of(name: str) -> int:
    """How narrow a symptom is: its place in the table."""
    return next((at for at, symptom in enumerate(_symptoms()) if symptom.name == name), len(_symptoms()))
