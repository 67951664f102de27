"""Lines of a log that print the same keys again and again, as rows: keys are looked up once per skeleton, not per line.

A skeleton is a line without its digits. Lines of one skeleton print their numbers in the same places, so that the keys
of the first line serve all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from stallwise.evidence.reading import Cell, Rows
from stallwise.readers.shapes.keyed import pair_matches

_DIGITS = str.maketrans("", "", "0123456789")
_TOKEN = re.compile(r"\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
LONGEST = 4000  # characters; longer lines are dumps
FEWEST = 2  # pairs that make a line a record


@dataclass(slots=True)
class Template:
    """What all lines of one skeleton have in common."""

    keys: tuple[tuple[str, str], ...]  # key and unit, as written
    slots: tuple[int, ...]  # which number of the line is the value of each key
    tokens: int
    values: list[list[float]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def records(lines: Iterable[str], wanted: Callable[[str, str], bool]) -> Iterator[Template]:
    """Skeletons of which at least two keys are wanted, with the numbers of all their lines."""
    known: dict[str, Template | None] = {}
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST or (":" not in line and "=" not in line):
            continue
        skeleton = line.translate(_DIGITS)
        if skeleton not in known:
            known[skeleton] = _template(line, wanted)
        template = known[skeleton]
        if template is None:
            continue
        tokens = _TOKEN.findall(line)
        if len(tokens) != template.tokens:
            continue
        template.values.append([float(tokens[slot].replace(",", "")) for slot in template.slots])
        template.places.append(number)
        template.lines.append(line)
    yield from (t for t in known.values() if t is not None and t.places)


def _template(line: str, wanted: Callable[[str, str], bool]) -> Template | None:
    starts = [m.start() for m in _TOKEN.finditer(line)]
    keys: list[tuple[str, str]] = []
    slots: list[int] = []
    for match in pair_matches(line):
        at = match.start("value")
        key, unit = match["key"].strip(), match["unit"] or ""
        if at in starts and wanted(key, unit):
            keys.append((key, unit))
            slots.append(starts.index(at))
    return Template(tuple(keys), tuple(slots), len(starts)) if len(keys) >= FEWEST else None


def rows_of_template(template: Template) -> Rows:
    """The same as rows."""
    cells: tuple[list[Cell], ...] = tuple([row[i] for row in template.values] for i in range(len(template.keys)))
    return Rows(tuple(k for k, _ in template.keys), cells, template.places)
