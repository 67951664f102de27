"""Tables drawn with spaces, bars or boxes: aligned columns, Markdown, the frames of rich and of nvidia-smi."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from stallwise.evidence.reading import Cell, Rows, cell_of, rows_of

_RULE = re.compile(r"^[\s|:+=\u2500-\u257f-]*$")  # the whole block of box drawing, light, heavy and double
BARS = "|│║┃"
_ONE_BAR = str.maketrans(BARS, "|" * len(BARS))
_PAIR = re.compile(r"[:=]\s?[-+]?\d")  # of a line of a log, whose bars part no columns
_GAP = re.compile(r"\s{2,}|\t+")
LEAST_ROWS = 1
ALIKE = 0.8  # of the rows below a header have its width


def is_rule(line: str) -> bool:
    """A line that only draws."""
    return bool(line.strip()) and bool(_RULE.match(line))


def barred(lines: list[tuple[int, str]]) -> Rows | None:
    """A table whose cells stand between bars; the first row that is no rule is the header."""
    rows = _finer([(n, _cells(line)) for n, line in lines if not is_rule(line)])
    if len(rows) < 1 + LEAST_ROWS:
        return None
    header = rows[0][1]
    width = len(header)
    body = [(n, row) for n, row in rows[1:] if len(row) == width]
    if width < 2 or not body or any(_PAIR.search(title) for title in header):
        return None
    records: list[list[Cell]] = [[cell_of(c) for c in row] for _, row in body]
    return rows_of(header, records, [n for n, _ in body])


def _finer(rows: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Cells cut again at their gaps, where bars only part groups of columns: the header and half of the rows then agree."""
    cut = [(n, [[part.strip() for part in _parts(c)] for c in cells]) for n, cells in rows]
    widths = [[len(parts) for parts in cells] for _, cells in cut]
    if not widths or max(widths[0], default=0) < 2 or 2 * widths[1:].count(widths[0]) < len(widths) - 1:
        return rows
    return [(n, [part for parts in cells for part in parts]) for n, cells in cut]


def _cells(line: str) -> list[str]:
    cells = [c.strip().strip("*`") for c in line.strip().translate(_ONE_BAR).split("|")]
    if cells and not cells[0] and line.strip()[:1] in BARS:
        cells = cells[1:]
    if cells and not cells[-1]:
        cells = cells[:-1]
    return cells


def between_bars(line: str) -> bool:
    """A row between bars, or a rule among them."""
    return sum(map(line.count, BARS)) >= 2 or is_rule(line)


def has_gaps(line: str) -> bool:
    """Cells that are kept apart by two spaces or more."""
    return _has_gap(line.strip())


def _has_gap(text: str) -> bool:
    return "  " in text or "\t" in text


def _parts(text: str) -> list[str]:
    """A text cut at its gaps; most have none, and need no expression."""
    return list(_split(text)) if _has_gap(text) else [text]


@lru_cache(maxsize=1024)
def _split(text: str) -> tuple[str, ...]:
    """Remembered: a line is tried as a row of several tables."""
    return tuple(_GAP.split(text))


def barred_begins(lines: list[str]) -> list[bool]:
    """At which lines of a run a table between bars begins. One pass from the end: trying each costs the square of the run."""
    cells: Counter[int] = Counter()
    parts: Counter[tuple[int, ...]] = Counter()
    found: list[bool] = []
    for line in reversed(lines):
        if is_rule(line):
            found.append(bool(found) and found[-1])  # it begins with the row below
            continue
        row = _cells(line)
        finer = tuple(len(_parts(cell)) for cell in row)
        cut = max(finer, default=0) >= 2 and 2 * parts[finer] >= cells.total()
        found.append(cells.total() >= LEAST_ROWS and (cut or (len(row) >= 2 and cells[len(row)] > 0)))
        cells[len(row)] += 1
        parts[finer] += 1
    return found[::-1]


def spaced_begins(lines: list[str]) -> list[bool]:
    """The same for columns that are kept apart by spaces."""
    widths: Counter[int] = Counter()
    with_numbers: Counter[int] = Counter()
    counted: Counter[int] = Counter()  # rows of a data frame bear a number that has no title
    found: list[bool] = []
    for line in reversed(lines):
        if is_rule(line):
            found.append(bool(found) and found[-1])
            continue
        row = _parts(line.strip())
        words = not row[0].endswith(":") and not any(isinstance(cell_of(c.lstrip("# ")), float) for c in row)
        wide = max(
            len(row), len(row) + 1, key=widths.__getitem__
        )  # rows of a data frame bear a number that has no title
        found.append(words and 0 < widths[wide] >= ALIKE * widths.total() and with_numbers[wide] > 0)
        widths[len(row)] += 1
        counted[len(row)] += row[0].isdecimal()
        with_numbers[len(row)] += any(isinstance(cell_of(c), float) for c in row)
    return found[::-1]


def spaced(lines: list[tuple[int, str]]) -> Rows | None:
    """A table whose columns are kept apart by two spaces or more: a header of words, then rows of the same width."""
    rows = [(n, _parts(line.strip())) for n, line in lines if line.strip() and not is_rule(line)]
    if len(rows) < 1 + LEAST_ROWS:
        return None
    header = [c.lstrip("# ") for c in rows[0][1]]
    if len(header) < 2 or any(isinstance(cell_of(c), float) for c in header):
        return None
    numbered = sum(len(r) == len(header) + 1 and r[0].isdecimal() for _, r in rows[1:]) >= ALIKE * (len(rows) - 1)
    body = [(n, r[numbered:]) for n, r in rows[1:] if len(r) == len(header) + numbered]
    if not body or len(body) < ALIKE * (len(rows) - 1):
        return None
    if not any(isinstance(cell_of(c), float) for _, r in body for c in r):
        return None
    return rows_of(header, [[cell_of(c) for c in r] for _, r in body], [n for n, _ in body])
