"""What sentences say without a number: statements (said.toml), and what the teller holds to be the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from stallwise.meaning.blamed import QUANTITY as blamed_quantity
from stallwise.meaning.blamed import blamed_in
from stallwise.meaning.groups import Line, clauses, line_of, plain, sayable, says
from stallwise.meaning.words import book

_NEGATION = re.compile(
    r"\b(?:no|not|without|never|none|zero|isn't|aren't|wasn't|don't|doesn't|neither|nor)\b[\w' -]{0,24}$"
)
_ANSWERED_NO = re.compile(r"^\s{0,8}[:=]?\s{0,8}(?:none|no|0|false)\b")


class Said(NamedTuple):
    """A statement without a number."""

    quantity: str
    value: str
    text: str


class _Saying(NamedTuple):
    quantity: str
    value: str
    phrases: re.Pattern[str] | None
    negatable: bool
    lines: tuple[Line, ...]  # words that say it together, in one clause


@cache
def _sayings() -> tuple[_Saying, ...]:
    found = []
    for row in book("said.toml")["said"]:
        phrases = sorted(row.get("phrases", ()), key=len, reverse=True)
        pattern = re.compile(r"(?<![\w-])(?:" + "|".join(re.escape(p) for p in phrases) + r")(?![\w])")
        lines = tuple(line_of(line, ordered=True) for line in row.get("words", ()))
        found.append(
            _Saying(
                row["quantity"], str(row["value"]), pattern if phrases else None, row.get("negatable", False), lines
            )
        )
    return tuple(found)


def said_in(text: str) -> Iterator[Said]:
    """Statements, each quantity once; a negation before a negatable one turns it around."""
    lowered = plain(text)
    parts = clauses(lowered)
    seen: set[str] = set()
    for saying in _sayings():
        if saying.quantity in seen:
            continue
        match = saying.phrases.search(lowered) if saying.phrases else None
        heard = sayable(saying.lines, lowered) if match is None else []
        part = next((p for p in parts for line in heard if says(line, p)), None)
        if match is None and part is None:
            continue
        seen.add(saying.quantity)
        if match is None:
            yield Said(saying.quantity, saying.value, (part or "").strip())
            continue
        before, behind = lowered[max(0, match.start() - 32) : match.start()], lowered[match.end() : match.end() + 16]
        negated = saying.negatable and bool(_NEGATION.search(before) or _ANSWERED_NO.match(behind))
        yield Said(saying.quantity, "no" if negated else saying.value, match[0])
    if (blamed := blamed_in(text)) is not None:
        yield Said(blamed_quantity, *blamed)
