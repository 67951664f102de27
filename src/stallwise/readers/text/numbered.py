"""Members told one after the other: "rank 0: 412 ms, rank 1: 415 ms, rank 2: 880 ms" is a table over ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from stallwise.evidence.reading import Cell, Reading, Rows, rows_of
from stallwise.readers.text.scopes import axis_of
from stallwise.readers.text.value import number_in
from stallwise.readers.text.words import words_of
from stallwise.units import Unit, readings_of

LEAST = 3  # members that have a middle
PLACES = ("rank", "gpu", "node", "stage", "expert")
LONGEST_NOUN = 3  # words that name what all of them are of
_KEY = re.compile(r"([A-Za-z]{3,6})[ _#-]{0,2}(\d{1,5})")


class Member(NamedTuple):
    """One of them."""

    axis: str
    number: float
    seconds: float
    lead: str  # words before the first one
    of: tuple[Reading, ...]  # what says so


def numbered_lists(singles: list[Reading]) -> tuple[list[Reading], list[Rows]]:
    """What is left of the readings, and the table of their members."""
    for found in ([*_keyed(singles)], [*_in_sentences(singles)]):
        numbers = {m.number for m in found}
        # One member told twice is compared with itself.
        if len(found) >= LEAST and len(numbers) == len(found) and len({m.axis for m in found}) == 1:
            axis = found[0].axis
            noun = [w for w in words_of(found[0].lead) if w != axis][-LONGEST_NOUN:]
            cells: list[list[Cell]] = [[m.number, m.seconds] for m in found]
            titles = [axis if axis == "rank" else f"{axis}_id", "_".join((*noun, "s"))]
            used = {id(r) for m in found for r in m.of}
            table = rows_of(titles, cells, list(range(1, len(found) + 1)), noun="member")
            return [r for r in singles if id(r) not in used], [table]
    return singles, []


def _keyed(singles: list[Reading]) -> Iterator[Member]:
    """ "rank 0: 412 ms" by its key."""
    for reading in singles:
        key = _KEY.fullmatch(reading.path[-1].strip()) if not reading.in_prose and reading.path else None
        value = number_in(reading.value) if isinstance(reading.value, str) else (reading.value, reading.unit)
        if key is not None and value is not None and not isinstance(value[0], bool) and (axis := _axis(key[1])):
            if (factor := _seconds(value[1])) is not None:
                yield Member(axis, float(key[2]), float(value[0]) * factor, "", (reading,))


def _in_sentences(singles: list[Reading]) -> Iterator[Member]:
    """ "rank 0 takes 412 ms": a bare whole number behind the name of an axis, and the time behind it."""
    for one, other in pairwise([r for r in singles if r.in_prose]):
        words = one.path[-1].split()[-1:]
        whole = one.place == other.place and not one.unit and float(one.value).is_integer()
        axis = _axis(words[0]) if words and whole else ""
        if axis and (factor := _seconds(other.unit)) is not None:
            yield Member(axis, float(one.value), float(other.value) * factor, one.path[0], (one, other))


def _axis(word: str) -> str:
    axis = axis_of(word.lower())
    return axis if axis in PLACES else ""


def _seconds(unit: str) -> float | None:
    return next((factor for dimension, factor in readings_of(unit) if dimension is Unit.SECOND), None)
