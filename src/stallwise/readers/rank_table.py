"""Tables by rank, pipeline stage or expert: a header, then one row each, times and token counts as columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Scope, Source, Table
from stallwise.evidence.reading import Cell
from stallwise.readers._cells import seconds_in, whole_of
from stallwise.readers.shapes._plainly import plain_words
from stallwise.readers.shapes.delimited import first_row, table_in

FORMAT = "table of ranks, stages or experts"
AXES = {"rank": "rank", "stage": "stage", "pp_stage": "stage", "pipeline_stage": "stage", "expert": "expert",
        "expert_id": "expert", "global_rank": "rank", "pp_rank": "stage"}  # fmt: skip
MIN_ROWS = 2
_TIME = re.compile(
    r"(time|dur|latency|dispatch|combine|forward|backward|fwd|bwd|compute|wait|step|iter|decode|_ms|_us|_s)", re.I
)
_TOKENS = re.compile(r"token|tokens_|num_tok|load|routed", re.I)


def recognises(name: str, head: bytes) -> bool:
    """A header with a rank, stage or expert column and a column of times or tokens; no step column."""
    columns = first_row(head)
    lowered = {c.lower() for c in columns}
    by_place = len(columns) >= 2 and AXES.keys() & lowered and not lowered & {"step", "iteration", "timestamp"}
    return bool(by_place) and any(map(_quantity, columns))


def read(artifact: Artifact) -> Iterator[Item]:
    """One table; times in seconds."""
    rows = table_in(artifact.text())
    at = next((c for c in rows.columns if c.lower() in AXES), None) if rows is not None else None
    if rows is None or at is None:
        return
    axis, places = AXES[at.lower()], [whole_of(cell) for cell in rows.column(at)]
    kept = [i for i, place in enumerate(places) if place is not None]
    if len(kept) < MIN_ROWS:
        return
    found: dict[str, NDArray[Any]] = {axis: np.array([places[i] for i in kept], np.int64)}
    meta: dict[str, list[str]] = {"times": [], "tokens": []}
    for column, cells in zip(rows.columns, rows.cells, strict=True):
        values, kind = [cells[i] for i in kept], _quantity(column)
        numbers = all(isinstance(v, float) for v in values)
        if column != at and kind is None and not numbers:
            found[column.lower()] = np.array([_word(v) for v in values])
        elif column != at and kind is not None and numbers:
            found[column] = np.array(values, np.float64) * kind[1]
            meta[kind[0]].append(column)
    source = Source(artifact.name, f"{len(kept)} rows")
    yield Table("rank_table", found, source, Scope(run=artifact.name), {"axis": axis, **meta})


def _word(cell: Cell) -> str:
    return "" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell)


def _quantity(column: str) -> tuple[str, float] | None:
    """Whether a column holds times or tokens, and what turns it into SI."""
    if _TOKENS.search(column):
        return "tokens", 1.0
    scale = seconds_in(plain_words(column))
    return ("times", scale) if scale is not None and _TIME.search(column) else None
