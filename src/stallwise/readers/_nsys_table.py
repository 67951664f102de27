"""The tables that `nsys stats` prints, as CSV or as aligned text under a ruler of dashes; many may follow one another."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from stallwise.readers.shapes.delimited import cells_in, whole_rows

_SCALE = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_UNIT = re.compile(r"\((ns|us|ms|s)\)$")
_RULER = re.compile(r"^\s*-{3,}(\s+-{3,})+\s*$")


@dataclass(frozen=True)
class SummaryRow:
    """One line of a summary: seconds in all, how often, and of what."""

    total_s: float
    count: float
    name: str
    line: int  # from one


@dataclass(frozen=True)
class Summary:
    """One table: the title of its count (Instances, Num Calls, Count, ...) says what is summed."""

    counted: str
    rows: tuple[SummaryRow, ...]


def summaries(lines: list[str]) -> Iterator[Summary]:
    """Every summary of times in the order they stand."""
    for number, line in enumerate(lines):
        if "Total Time" not in line:
            continue
        if "," in line:
            titles = cells_in(line)
            body = _cells_of_csv(lines, number + 1)
        elif number + 1 < len(lines) and _RULER.match(lines[number + 1]):
            edges = [match.span() for match in re.finditer("-+", lines[number + 1])]
            titles = _cut(line, edges)
            body = _cells_of_text(lines, number + 2, edges)
        else:
            continue
        found = _summary([title.strip() for title in titles], body)
        if found is not None:
            yield found


def has_summary(head: bytes, counted: tuple[str, ...]) -> bool:
    """Whether a summary with one of these counts begins here."""
    text = head[:65536].decode("utf-8", "replace")
    return any("Total Time" in line and any(title in line for title in counted) for line in text.splitlines())


def _cut(line: str, edges: list[tuple[int, int]]) -> list[str]:
    """Cells under the ruler, cut between words: a row that slipped by a letter keeps its numbers whole. The last may run on."""
    starts = [_word_start(line, a) for a, _ in edges]
    return [line[a:b].strip() for a, b in pairwise(starts)] + [line[starts[-1] :].strip()]


def _word_start(line: str, at: int) -> int:
    """This place, or the beginning of the word that it would cut."""
    while 0 < at < len(line) and not line[at].isspace() and not line[at - 1].isspace():
        at -= 1
    return at


def _cells_of_text(lines: list[str], begin: int, edges: list[tuple[int, int]]) -> Iterator[tuple[int, list[str]]]:
    for number in range(begin, len(lines)):
        if not lines[number].strip():
            return
        yield number + 1, _cut(lines[number], edges)


def _cells_of_csv(lines: list[str], begin: int) -> Iterator[tuple[int, list[str]]]:
    for number, row in enumerate(whole_rows(csv.reader(lines[begin:])), begin + 1):
        if len(row) < 4:
            return
        yield number, row


def _summary(titles: list[str], body: Iterator[tuple[int, list[str]]]) -> Summary | None:
    at = next((i for i, title in enumerate(titles) if title.startswith("Total Time")), None)
    if at is None or at + 1 >= len(titles):
        return None
    unit = _UNIT.search(titles[at])
    scale = _SCALE[unit[1]] if unit else _SCALE["ns"]
    rows = []
    for number, cells in body:
        try:
            total, count = (float(cells[i].replace(",", "")) for i in (at, at + 1))
        except (ValueError, IndexError):
            continue
        rows.append(SummaryRow(total * scale, count, cells[-1].strip(), number))
    return Summary(titles[at + 1], tuple(rows))
