"""Lines of a log that print the same keys again and again: keys are looked up once per skeleton, not per line.

Lines of one skeleton print their numbers in the same places, so that the keys of the first line serve all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stallwise.evidence.number_columns import TOKEN, Column
from stallwise.evidence.skeletons import LONGEST, Skeletons
from stallwise.readers.shapes.keyed import pair_matches

FEWEST = 2  # pairs that make a line a record


@dataclass(frozen=True, slots=True)
class Records:
    """The lines of one skeleton: what they print and where."""

    keys: tuple[tuple[str, str], ...]  # key and unit, as written
    values: Column  # a row a key, a column a line
    lines: list[int]  # indices
    skeleton: int


def records(text: Skeletons, wanted: Callable[[str, str], bool]) -> Iterator[Records]:
    """Skeletons of which at least two keys are wanted, with the numbers of all their lines."""
    for skeleton, first in enumerate(text.firsts):
        sample = text.lines[first]
        if len(sample) > LONGEST or (":" not in sample and "=" not in sample):
            continue
        starts = [m.start() for m in TOKEN.finditer(sample)]
        pairs = [(m["key"].strip(), m["unit"] or "", m.start("value")) for m in pair_matches(sample)]
        found = [(key, unit, starts.index(at)) for key, unit, at in pairs if at in starts and wanted(key, unit)]
        rows = text.columns(skeleton, [slot for _, _, slot in found]) if len(found) >= FEWEST else None
        if rows is not None:
            yield Records(tuple((key, unit) for key, unit, _ in found), rows.T, text.members(skeleton), skeleton)
