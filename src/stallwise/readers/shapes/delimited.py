"""Tables with a sign between cells: commas, tabs, semicolons or bars; quoted or not, with lines that are broken."""

from __future__ import annotations

import contextlib
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from stallwise.evidence.file_cache import cached_for_file
from stallwise.evidence.reading import Rows, Shape, cell_of, cells_of, rows_in

SIGNS = ("\t", ",", ";", "|")
MIN_ROWS = 1
SAME_WIDTH = 0.8  # share of the lines that must have the header's number of cells
LONGEST_HEADER = 4000
LOOKED_AT = 60  # lines that decide
LEAST_FILLED, MOST_EMPTY = 3, 2  # columns
Row = TypeVar("Row")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d\b")
_COMMA = re.compile(r"(?<=\d),(\d{1,20})(?![\d,])")
_POINT = re.compile(r"(?<![\d.])\d{1,20}\.\d{1,20}(?![\d.])")
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
    # A row of one value is where a sample ends, or a mark.
    widths = [
        len(row) for at, row in enumerate(rows) if at == 0 or sum(not cell.isspace() and cell != "" for cell in row) > 1
    ]
    if len(widths) < 1 + MIN_ROWS:
        return False
    header = cells_in(lines[0], sign)[: _width(widths)]
    plain = [c.partition("{")[0] for c in header]  # a metric's labels are no part of its name
    words = [c for c in plain if c.strip() and not isinstance(cell_of(c), float)]
    named = len(words) >= max(2, 0.6 * len(header)) and not any(len(c) > 80 or ": " in c or "=" in c for c in words)
    return named and len(header) >= 2 and sum(w == len(header) for w in widths[1:]) >= SAME_WIDTH * (len(widths) - 1)


def _width(widths: Sequence[int]) -> int:
    """Of the rows: the header may name columns behind them that nobody filled."""
    usual = Counter(widths[1:]).most_common(1)[0][0]
    return usual if usual >= LEAST_FILLED and 0 < widths[0] - usual <= MOST_EMPTY else widths[0]


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


@cached_for_file
def table_in(text: str) -> Rows | None:
    """The table, rows of another width left out."""
    sign = sign_of(text)
    if sign is None:
        return None
    lines = (text if sign == "," else _with_points(text)).lstrip("\ufeff").splitlines()
    filled = [n for n, x in enumerate(lines) if x and x[0] != "#" and not x.isspace()]
    columns = _titles(lines[filled[0]], sign)
    columns = columns[: _width([len(cells_in(lines[n], sign)) for n in filled[:LOOKED_AT]])]
    cut = _by_signs if '"' not in text and len(max(lines, key=len)) < csv.field_size_limit() else _by_quotes
    fitting, cells = cut([lines[n] for n in filled], sign, columns)
    return rows_in(columns, [cells_of(c) for c in cells], [filled[at] + 1 for at in fitting]) if fitting else None


def _with_points(text: str) -> str:
    """Numbers of a country that writes 1,5; where all have three digits behind the comma, they are thousands."""
    behind = {len(found) for found in _COMMA.findall(text)}
    return _COMMA.sub(r".\1", text) if behind - {3} and _POINT.search(text) is None else text


def _titles(line: str, sign: str) -> list[str]:
    return [c.strip().strip('"') for c in cells_in(line, sign)]


def _by_signs(lines: list[str], sign: str, columns: list[str]) -> tuple[list[int], Iterable[Sequence[str]]]:
    """Lines that are rows, and their columns, where nothing is quoted: all cut at once. A header may come again."""
    width, last = len(columns), columns[-1]
    fitting = [
        at
        for at, line in enumerate(lines)
        if line.count(sign) == width - 1 and not (last in line[-len(last) - 9 :] and _titles(line, sign) == columns)
    ]
    flat = sign.join([lines[at] for at in fitting]).split(sign)
    return fitting, (flat[at::width] for at in range(width))


def _by_quotes(lines: list[str], sign: str, columns: list[str]) -> tuple[list[int], Iterable[Sequence[str]]]:
    """The same where cells may hold signs."""
    rows = list(whole_rows(csv.reader(lines, delimiter=sign, skipinitialspace=True)))
    fitting = [
        at
        for at, row in enumerate(rows)
        if len(row) == len(columns) and (row[-1].strip() != columns[-1] or [c.strip() for c in row] != columns)
    ]
    return fitting, zip(*(rows[at] for at in fitting), strict=True)
