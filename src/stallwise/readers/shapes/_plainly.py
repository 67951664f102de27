"""The same content in its plainest clothes: a table as CSV with snake_case columns, whatever signs or names it came in."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.reading import Cell, Rows
from stallwise.readers.shapes import delimited, tree

MAX_BYTES = 32 << 20
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CUT = re.compile(r"[^a-z0-9µ%]+")
_HUMP = re.compile(r"^[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+$")


def plainly(artifact: Artifact) -> Artifact | None:
    """The artifact told as plain CSV or JSON; None where it is plain already or has no such form."""
    start = artifact.head[:4096].lstrip()
    if not start or b"\x00" in start or artifact.size_bytes > MAX_BYTES or b"traceEvents" in start:
        return None
    if start[:1] in (b"{", b"["):
        return _from_json(artifact)
    sign = delimited.sign_of(artifact.head[: 1 << 16].decode("utf-8", "replace"))
    if sign is None or (sign == "," and not _humped(artifact)):
        return None
    rows = delimited.table_in(artifact.text(MAX_BYTES))
    return _as_csv(artifact, rows) if rows is not None else None


def _humped(artifact: Artifact) -> bool:
    first = artifact.head[:4096].split(b"\n", 1)[0].decode("utf-8", "replace")
    return any(_HUMP.match(c.strip().strip('"')) for c in first.split(","))


def _from_json(artifact: Artifact) -> Artifact | None:
    found = tree.tree_of(artifact.name, artifact.text(MAX_BYTES))
    if tree.is_table(found):
        return _as_csv(artifact, tree.table_of(found))
    if isinstance(found, dict):
        renamed = _renamed(found)
        return replace(artifact, path=None, url=None, content=json.dumps(renamed, indent=1).encode())
    return None


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {snake(str(k)): _renamed(v) for k, v in value.items()}
    return [_renamed(v) for v in value] if isinstance(value, list) else value


def snake(name: str) -> str:
    """stepTimeMs -> step_time_ms; names with spaces or capitals of their own stay."""
    return _CAMEL.sub("_", name).lower() if _HUMP.match(name) else name


def plain_words(name: str) -> tuple[str, ...]:
    """`MemAllocated (GB)` -> mem allocated gb."""
    return tuple(w for w in _CUT.split(_CAMEL.sub(" ", name).lower()) if w)


def csv_of(artifact: Artifact, rows: Rows, told: dict[int, tuple[str, list[float | str | None]]]) -> Artifact:
    """Rows as an artifact of their own; `told` gives columns another title and other cells."""
    columns = tuple(told[i][0] if i in told else c for i, c in enumerate(rows.columns))
    cells = tuple(list(told[i][1]) if i in told else c for i, c in enumerate(rows.cells))
    return _as_csv(artifact, Rows(columns, cells, rows.places))


def _as_csv(artifact: Artifact, rows: Rows) -> Artifact:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([snake(c) for c in rows.columns])
    for record in zip(*rows.cells, strict=True):
        writer.writerow([_written(cell) for cell in record])
    return replace(artifact, path=None, url=None, content=out.getvalue().encode("utf-8", "replace"))


def _written(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell)
    if isinstance(cell, float):
        return str(int(cell)) if abs(cell) < 1e15 and cell == int(cell) else repr(cell)
    return cell
