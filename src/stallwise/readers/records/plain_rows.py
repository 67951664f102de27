"""The same content in its plainest clothes: a table as CSV with snake_case columns, whatever signs or names it came in."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.reading import Cell, Rows, cells_of, rows_in
from stallwise.readers.shapes import delimited, document, tree, xml
from stallwise.readers.shapes.unwrap import is_text

MAX_BYTES = 32 << 20
MAX_DRAWN = 1 << 18  # people paste pages
SAMPLE_ROWS = 4096  # of a table, by which readers know it
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CUT = re.compile(r"[^a-z0-9µ%]+")
_SPELLED = re.compile(r"^[a-z][a-z0-9]*(?:-[a-z0-9]+)+$|^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$")
_HUMP = re.compile(r"^[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+$")


def plainly(artifact: Artifact, most: int | None = None) -> Artifact | None:
    """The artifact told as plain CSV or JSON, or the first rows of it; None where it is plain already or has no such form."""
    start = artifact.head[:4096].lstrip()
    if not start or b"\x00" in start or artifact.size_bytes > MAX_BYTES or b"traceEvents" in start:
        return None
    if start[:1] in (b"{", b"[", b"<", b"-"):
        return _from_tree(artifact, most)
    sign = delimited.sign_of(artifact.head[: 1 << 16].decode("utf-8", "replace"))
    if sign is None or (sign == "," and not _dressed(artifact)):
        return None
    rows = delimited.table_in(artifact.text(MAX_BYTES))
    return as_csv(artifact, rows, most) if rows is not None else None


def _dressed(artifact: Artifact) -> bool:
    """Titles in quotes, or spelled otherwise than most programs do."""
    first = artifact.head[:4096].split(b"\n", 1)[0].decode("utf-8", "replace")
    return '"' in first or any(snake(c.strip()) != c.strip() for c in first.split(","))


def _from_tree(artifact: Artifact, most: int | None) -> Artifact | None:
    text = artifact.text(MAX_BYTES)
    is_xml = xml.recognises(artifact.name, text)
    found = xml.parsed(text) if is_xml else tree.tree_of(artifact.name, text)
    inner, above = found, dict[str, Any]()
    while isinstance(inner, dict) and len(parts := [x for x in inner.values() if isinstance(x, dict | list)]) == 1:
        above |= {k: v for k, v in inner.items() if v is not parts[0] and v != len(parts[0])}
        inner = parts[0]
    words = all(isinstance(v, str) for v in above.values())  # numbers around it are settings and results of their own
    if words and tree.is_table(inner):
        return as_csv(artifact, tree.table_of([{**above, **row} for row in inner] if above else inner), most)
    if isinstance(found, dict) and not is_xml:
        renamed = _renamed(found)
        return artifact.saying(json.dumps(renamed, indent=1))
    return None


def redrawn(artifact: Artifact) -> Artifact | None:
    """Every table drawn with bars or spaces as CSV in its place, the lines around it as they are; None where there is none."""
    if artifact.size_bytes > MAX_DRAWN or not is_text(artifact.head):
        return None
    lines = artifact.text(MAX_DRAWN).splitlines()
    redrawn_lines = list(lines)
    for rows, first, end in document.drawn_tables(lines):
        redrawn_lines[first:end] = [""] * (end - first)
        for place, line in zip([rows.places[0] - 1, *rows.places], _csv_lines(rows), strict=True):
            redrawn_lines[place - 1] = line
    return artifact.saying("\n".join(redrawn_lines)) if redrawn_lines != lines else None


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {snake(str(k)): _renamed(v) for k, v in value.items()}
    return [_renamed(v) for v in value] if isinstance(value, list) else value


def snake(name: str) -> str:
    """stepTimeMs, step-time-ms and STEP_TIME_MS -> step_time_ms; names with spaces or capitals of their own stay."""
    if _HUMP.match(name):
        return _CAMEL.sub("_", name).lower()
    return name.replace("-", "_").lower() if _SPELLED.match(name) else name


def plain_words(name: str) -> tuple[str, ...]:
    """`MemAllocated (GB)` -> mem allocated gb."""
    return tuple(w for w in _CUT.split(_CAMEL.sub(" ", name).lower()) if w)


def recolumned(rows: Rows, columns: dict[int, tuple[str, list[float | str | None]]]) -> Rows:
    """Rows as they are read from a CSV of their own; `columns` gives columns another title and other cells."""
    titles = [snake(columns[i][0] if i in columns else c) for i, c in enumerate(rows.columns)]
    cells = [
        cells_of(_written(columns[i][1] if i in columns else c)) if i in columns or rows.numbers(i) is None else c
        for i, c in enumerate(rows.cells)
    ]
    return rows_in(titles, cells, list(range(2, len(rows) + 2)))


def as_csv(artifact: Artifact, rows: Rows, most: int | None = None) -> Artifact:
    """Rows, or the first of them, as an artifact of their own."""
    return artifact.saying("\n".join(_csv_lines(rows, most)) + "\n")


def _csv_lines(rows: Rows, most: int | None = None) -> list[str]:
    """The titles, then a line a record: what spreads over lines in its cells is put into one."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([snake(c) for c in rows.columns])
    writer.writerows(zip(*(_in_lines(_written(cells[:most])) for cells in rows.cells), strict=True))
    return out.getvalue().splitlines()


def _in_lines(cells: list[str]) -> list[str]:
    return [" ".join(c.splitlines()) if "\n" in c or "\r" in c else c for c in cells]


def _written(cells: Iterable[Cell]) -> list[str]:
    return [
        "" if c is None
        else c if isinstance(c, str)
        else repr(c).removesuffix(".0")  # a count; of 1e15 and more only the writing differs
        for c in cells
    ]  # fmt: skip
