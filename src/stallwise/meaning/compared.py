"""Numbers of one sentence that are of the same thing: what it was, what it should be, of how much, or under another load.

"2.9 s, it used to be 1.4", "busbw 11 GB/s instead of 45", "250 W of 700 W", "22 tok/s at 16 QPS vs 180 at 4". The words that
compare are data (scopes.toml).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from stallwise.evidence.reading import Reading
from stallwise.meaning.scopes import BEFORE, EXPECTED, NOW, is_past, scope_words
from stallwise.meaning.words import book, classed, classes, words_of
from stallwise.units import Unit, readings_of

EITHER, MOST = "either", "most"
LONGEST_PHRASE = 3  # words
_COUNTED = {Unit.COUNT, Unit.TOKEN}
_RATES = {Unit.TOKEN_PER_S, Unit.PER_S, *_COUNTED}
_THOUSANDS = {"k", "K", "M"}
_MEASURED = set(Unit) - {Unit.COUNT, Unit.TOKEN, Unit.SHARE, Unit.RATIO}


class Kin(NamedTuple):
    """To which earlier number of its sentence a number belongs, and how."""

    to: int
    scope: str  # of this number: before, now, expected, or nothing where both are said alike
    most: bool = False  # the most that the earlier one can be


def kin_in(sentence: tuple[Reading, ...], ends: tuple[str, ...]) -> dict[int, Kin]:
    """Every number that is told by an earlier one; `ends` are the words of its clause behind each number."""
    found = _parallel(sentence)
    for at in range(1, len(sentence)):
        if at not in found and (kin := _kin(sentence, at, ends)) is not None:
            found[at] = kin
    return found


def _kin(sentence: tuple[Reading, ...], at: int, ends: tuple[str, ...]) -> Kin | None:
    reading = sentence[at]
    between = words_of_text(reading.path[0])
    if _is(between, MOST):
        counted = not reading.unit or bool(_dimensions(reading) & _COUNTED)
        fits = alike(sentence[at - 1], reading) or not sentence[at - 1].unit
        return Kin(at - 1, "", most=True) if fits and (counted or _dimensions(reading) & _MEASURED) else None
    clause = words_of_text(reading.path[-1])
    behind = words_of_text(ends[at])
    kind, left = _compared(clause)
    if kind in ("", EITHER):
        said, rest = _compared(behind)
        later = BEFORE if is_past(behind) else said
        if later in (BEFORE, EXPECTED) and (kind or not left) and not _content(rest if said else ()):
            kind = later
    if not kind and not clause and _under_another_condition(sentence[at - 1], reading):
        return Kin(at - 1, "")
    if not kind:
        return None
    for to in range(at - 1, -1, -1):
        if not alike(sentence[to], reading):
            if reading.unit:
                continue
            return None  # a bare number is of the last one's kind or of its own
        own = classed(words_of(f"{sentence[to].path[-1]} {ends[to]}"))
        return Kin(to, "" if kind == EITHER else kind) if _content(left) <= own else None
    return None


def _under_another_condition(one: Reading, other: Reading) -> bool:
    """ "80 ms in the afternoon and 25 ms at night": no key of its own, the same unit, and each with its when or where."""
    conditions = book("scopes.toml")["compared"]["condition"]
    told = other.after.lower().split()[:1]
    return bool(other.unit) and one.unit == other.unit and bool(told) and told[0] in conditions


def _parallel(sentence: tuple[Reading, ...]) -> dict[int, Kin]:
    """Two numbers or more said again in the same order, under another condition."""
    for second in range(2, len(sentence) - 1):
        between = words_of_text(sentence[second].path[0])
        kind = _compared(between)[0] or (EITHER if "and" in between else "")
        size = len(sentence) - second
        first = second - size
        if not kind or first < 0 or kind == MOST:
            continue
        pairs = [(sentence[first + n], sentence[second + n]) for n in range(size)]
        told_alike = all(
            alike(a, b) and _content(_compared(words_of_text(b.path[0]))[1]) <= classed(words_of(a.path[0]))
            for a, b in pairs
        )
        if told_alike and any(a.unit for a, _ in pairs):
            scope = kind if kind in (BEFORE, EXPECTED) else ""
            return {second + n: Kin(first + n, scope) for n in range(size)}
    return {}


def alike(one: Reading, other: Reading) -> bool:
    """Whether both may be of one thing, by their units; the second may be bare."""
    if not other.unit or one.unit == other.unit:
        return True
    if other.unit in _THOUSANDS:
        return not one.unit or bool(_dimensions(one) & _RATES)
    shared = _dimensions(one) & _dimensions(other)
    return bool(shared - _COUNTED)


def _dimensions(reading: Reading) -> set[Unit | None]:
    return {dimension for dimension, _ in readings_of(reading.unit)}


def words_of_text(text: str) -> tuple[str, ...]:
    """As the table writes them; arrows are words."""
    return tuple(text.lower().replace("'s", "").split())


def _compared(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """How these words compare, by the last of them that does, and the words that do not."""
    known, kind, left = _phrases(), "", []
    at = 0
    while at < len(words):
        size = next((n for n in range(LONGEST_PHRASE, 0, -1) if words[at : at + n] in known), 0)
        if size:
            here = known[words[at : at + size]]
            kind = here if here != EITHER or not kind else kind
        else:
            left.append(words[at])
        at += max(size, 1)
    return kind, tuple(left)


def _is(words: tuple[str, ...], kind: str) -> bool:
    found, left = _compared(words)
    return found == kind and not _content(left)


def _content(words: tuple[str, ...]) -> frozenset[str]:
    """Classes of the words that say of what a number is."""
    return classed(words_of(" ".join(w for w in words if w not in _filling())))


@cache
def _phrases() -> dict[tuple[str, ...], str]:
    data = book("scopes.toml")["compared"]
    return {tuple(p.split()): kind for kind in (BEFORE, NOW, EXPECTED, EITHER, MOST) for p in data[kind]}


@cache
def _filling() -> frozenset[str]:
    return frozenset(book("scopes.toml")["compared"]["filling"]) | classes().ignored | scope_words()
