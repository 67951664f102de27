"""A text check that only ever says what it did not find: negation, word order, units, number words and decimal commas hold."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from stallwise.drill.quantity import spelled
from stallwise.readers.text.words import classed, words_of
from stallwise.units import readings_of

ENOUGH = 0.5  # of the words that carry an idea, in one clause
WITHIN = 1.1  # two ways to round the same number
_CLAUSE = re.compile(r"(?<!\d)[.;:!?]|[.;:!?](?!\d)|\n|\bbut\b|\bhowever\b|\bwhereas\b|,\s")
_NOT = re.compile(
    r"\b(?:no|not|never|without|neither|nor|none|nothing|cannot|isn't|aren't|don't|doesn't|"
    r"didn't|won't|can't|irrelevant|instead of|rather than)\b"
)
_EMPTY = frozenset(
    "the a an and or of to in on at for with from by is are was were be it its this that than then as into per each all any "
    "so if".split()
)
_NUMBER = re.compile(r"(?<![\w.])([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*([%µ°A-Za-z/]*(?:\s?/\s?[A-Za-z]+)?)")


def not_found(text: str, names: Iterable[str]) -> bool:
    """True where none of the names of an idea stands in the text unnegated."""
    return not any(_holds(text, name) for name in names)


def _holds(text: str, name: str) -> bool:
    wanted_numbers = numbers(name)
    if wanted_numbers and not _stems(re.sub(r"[\d.,]+\s*\S*", "", name)):
        return any(_near(a, b) for a in wanted_numbers for b in numbers(_affirmed(text)))
    wanted = _stems(name)
    if not wanted:
        return False
    return any(len(wanted & _stems(c)) > ENOUGH * len(wanted) for c in _clauses(text) if _same_sign(c, name))


def _same_sign(clause: str, name: str) -> bool:
    """A negated clause holds a negated idea, and no other."""
    return bool(_NOT.search(clause)) == bool(_NOT.search(name.lower()))


def _clauses(text: str) -> list[str]:
    plain = text.lower().replace("\u2019", "'")
    return [*(c for c in _CLAUSE.split(plain) if c and c.strip()), *([plain] if not _NOT.search(plain) else [])]


def _affirmed(text: str) -> str:
    return " . ".join(c for c in _clauses(text) if not _NOT.search(c))


@cache
def _stems(text: str) -> frozenset[str]:
    naming = tuple(w for w in words_of(text) if w not in _EMPTY and not w.isdigit())
    return frozenset(w[:5] for w in classed(naming)) if naming else frozenset()


def numbers(text: str) -> list[tuple[object, float]]:
    """Values in SI with what they measure; a bare number measures nothing and equals any."""
    found: list[tuple[object, float]] = []
    for match in _NUMBER.finditer(spelled(text.replace("×", "x"))):
        value, unit = float(match[1]), match[2].strip(".,")
        known = readings_of(unit) if unit else ()
        found += [(measured, value * factor) for measured, factor in known] or [(None, value)]
    return found


def _near(a: tuple[object, float], b: tuple[object, float]) -> bool:
    same = a[0] is b[0] or a[0] is None or b[0] is None
    if a[1] == 0 or b[1] == 0:
        return same and a[1] == b[1]
    return same and 1 / WITHIN <= a[1] / b[1] <= WITHIN
