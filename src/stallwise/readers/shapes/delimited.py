"""Tables with a sign between cells: commas, tabs, semicolons or bars; quoted or not, with lines that are broken."""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Iterator
from typing import TypeVar

from stallwise.evidence.reading import Cell, Rows, Shape, cell_of, rows_of

SIGNS = ("\t", ",", ";", "|")
MIN_ROWS = 1
SAME_WIDTH = 0.8  # share of the lines that must have the header's number of cells
LONGEST_HEADER = 4000
LOOKED_AT = 60  # lines that decide
Row = TypeVar("Row")
_CLOCK = re.compile(r"\b\d\d:\d\d:\d\d\b")
_NO_DIGITS = str.maketrans("", "", "0123456789")


def recognises(name: str, text: str) -> bool:
    """A header of words and rows of the same width."""
    return sign_of(text) is not None


def sign_of(text: str) -> str | None:
    """The sign that cuts these lines into a table; None when none does."""
    lines = [x for x in text[: 1 << 16].splitlines() if x.strip() and not x.startswith("#")][:LOOKED_AT]
    if len(lines) < 1 + MIN_ROWS or len(lines[0]) > LONGEST_HEADER:
        return None
    if _CLOCK.search(lines[0]) or lines[0].translate(_NO_DIGITS) == lines[1].translate(_NO_DIGITS):
        return None  # titles name no moment, and are other words than what they stand over
    for sign in SIGNS:
        if sign in lines[0] and _fits(lines, sign):
            return sign
    return None


def _fits(lines: list[str], sign: str) -> bool:
    if lines[0].lstrip().startswith("|"):
        return False  # a Markdown table
    rows = list(whole_rows(csv.reader(lines, delimiter=sign, skipinitialspace=True)))
    if sum(any(_opens(c) for c in row) for row in rows) > (1 - SAME_WIDTH) * len(rows):
        return False  # a sign inside brackets parts no cells
    widths = [len(row) for row in rows]
    header = cells_in(lines[0], sign)
    plain = [c.partition("{")[0] for c in header]  # a metric's labels are no part of its name
    words = [c for c in plain if c.strip() and not isinstance(cell_of(c), float)]
    named = len(words) >= max(2, 0.6 * len(header)) and not any(len(c) > 80 or ": " in c or "=" in c for c in words)
    return named and len(header) >= 2 and sum(w == len(header) for w in widths[1:]) >= SAME_WIDTH * (len(widths) - 1)


def _opens(cell: str) -> bool:
    return cell.count("[") != cell.count("]") or cell.count("(") != cell.count(")")


def whole_rows(rows: Iterator[Row]) -> Iterator[Row]:
    """Rows up to the first that is no CSV, such as a cell of more letters than a cell may have: what was read stays."""
    with contextlib.suppress(csv.Error):
        yield from rows


def cells_in(line: str, sign: str = ",") -> list[str]:
    """The cells of one line; none where it is no CSV."""
    return next(whole_rows(csv.reader([line], delimiter=sign, skipinitialspace=True)), [])


def read(text: str) -> Iterator[Shape]:
    """One table."""
    rows = table_in(text)
    if rows is not None:
        yield rows


def table_in(text: str) -> Rows | None:
    """The table, rows of another width left out."""
    sign = sign_of(text)
    if sign is None:
        return None
    lines = [(n, x) for n, x in enumerate(text.lstrip("\ufeff").splitlines(), 1) if x.strip() and not x.startswith("#")]
    reader = csv.reader((x for _, x in lines), delimiter=sign, skipinitialspace=True)
    columns: list[str] = []
    records: list[list[Cell]] = []
    places: list[int] = []
    for at, row in enumerate(whole_rows(reader)):
        if not columns:
            columns = [c.strip().strip('"') for c in row]
        elif len(row) == len(columns) and [c.strip() for c in row] != columns:
            records.append([cell_of(c) for c in row])
            places.append(lines[min(at, len(lines) - 1)][0])
    return rows_of(columns, records, places) if records else None
