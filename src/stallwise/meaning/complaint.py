"""Symptoms in people's own words (symptoms.toml): word borders and negations hold."""

from __future__ import annotations

import re
from functools import cache

from stallwise.meaning.words import book

_NEGATION = re.compile(
    r"\b(?:no|not|without|never|isn't|isnt|don't|doesn't|didn't|zero|nor|avoids?|instead of|rather than)\b(?:\s+\w+){0,2}\s*$"
)
_CLAUSE = re.compile(r"[;,.:]|\b(?:but|while|although|though|yet|however|whereas)\b")
_ANSWERED_NO = re.compile(r"^\s*(?:[=:]|is|was)\s*(?:no|none|false|0|off|never|not)\b")


@cache
def _patterns() -> tuple[tuple[str, tuple[tuple[re.Pattern[str], ...], ...], bool], ...]:
    return tuple(
        (
            row["name"],
            tuple(tuple(_pattern(group) for group in line) for line in row["words"]),
            row.get("clause", False),
        )
        for row in book("symptoms.toml")["symptom"]
    )


def _pattern(group: str) -> re.Pattern[str]:
    words = [
        re.escape(w).replace(r"\*", r"\w*").replace(r"\?", r"\w?").replace(r"\ ", r"[ _-]") for w in group.split("|")
    ]
    return re.compile(r"(?<![\w])(?:" + "|".join(words) + r")(?![\w])")


def symptom_in(text: str) -> str:
    """The name of the symptom that this text complains of, the narrowest first; empty for none."""
    lowered = " ".join(text.lower().replace("\u2019", "'").split())
    clauses = _CLAUSE.split(lowered)
    for name, lines, in_one_clause in _patterns():
        parts = clauses if in_one_clause else [lowered]
        if any(all(_said(pattern, part) for pattern in line) for line in lines for part in parts):
            return name
    return ""


def _said(pattern: re.Pattern[str], text: str) -> bool:
    return any(
        not _NEGATION.search(text[max(0, m.start() - 32) : m.start()])
        and not _ANSWERED_NO.match(text[m.end() : m.end() + 16])
        for m in pattern.finditer(text)
    )


def order_of(name: str) -> int:
    """How narrow a symptom is: its place in the table."""
    return next((at for at, (n, _, _) in enumerate(_patterns()) if n == name), len(_patterns()))
