"""Tables of steps, one row a step: CSV and TSV with a header (Lightning's metrics.csv, W&B exports, home-made), JSON lines of any
logger, lists of objects, HF Trainer's trainer_state.json."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Source
from stallwise.evidence.reading import Reading, Rows, rows_of
from stallwise.readers.shapes import delimited, tree
from stallwise.readers.shapes._cut_json import closed, records_in

FORMAT = "table of steps"
LABELLED = True  # names of columns and settings, whatever stands in them
MAX_BYTES = 256 << 20
FEWEST_ROWS = 2
_OBJECTS = re.compile(
    rb"^\s*(?:\{\s*\"[^\n]*\}\s*\n\s*\{\s*\"|\[\s*\{)|\"(?:log_history|rows|steps|stats|records|history)\"\s*:\s*\[\s*\{"
)


def recognises(name: str, head: bytes) -> bool:
    """Rows under a header, or alike objects."""
    start = head[: 1 << 16]
    if b"\x00" in start or b"traceEvents" in start[:4096]:
        return False
    if start.lstrip()[:1] in (b"{", b"["):
        return _OBJECTS.search(start) is not None
    return delimited.sign_of(start.decode("utf-8", "replace")) is not None


def read_rows(rows: Rows, file: str) -> Iterator[Rows]:
    """Rows that somebody has read already."""
    yield rows


def read(artifact: Artifact) -> Iterator[Item | Rows | Reading]:
    """The rows, and what stands beside them."""
    text = artifact.text(MAX_BYTES)
    if text.lstrip()[:1] not in ("{", "["):
        rows = delimited.table_in(text)
        yield from [rows] if rows is not None else []
        return
    found = tree.tree_of(artifact.name, text)
    whole = found is not None
    if not whole and (rest := closed(text)) is not None:
        found = tree.tree_of(artifact.name, rest)
    lost = "cut off"
    if found is None:
        lost, found = "damaged", {"records": records_in(text)}
        if not found["records"]:
            raise UnreadableInput(f"{artifact.name} is not whole JSON", hint="copy the file again")
    shapes = list(tree.shapes_of(found))
    tables = [s for s in shapes if isinstance(s, Rows) and len(s) >= FEWEST_ROWS]
    only = [s for s in shapes if isinstance(s, Reading) and len(s.path) == 2]  # a list of one record
    if not tables and only:
        tables = [rows_of([s.path[1] for s in only], [[s.value for s in only]], [1], path=only[0].path[:1], noun="row")]
    if not whole:
        count = max((len(t) for t in tables), default=0)
        yield Note(f"the file is {lost}: {count} whole records were read", Source(artifact.name), lost=True)
    yield from tables
    yield from (s for s in shapes if isinstance(s, Reading) and len(s.path) == 1)
    if not tables:
        yield Note("no objects with steps could be read", Source(artifact.name))
