"""Tables by rank, pipeline stage or expert: CSV with a header, one row each, times and token counts as columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Scope, Source, Table
from stallwise.readers._cells import whole_of

FORMAT = "table of ranks, stages or experts"
AXES = {"rank": "rank", "stage": "stage", "pp_stage": "stage", "pipeline_stage": "stage", "expert": "expert",
        "expert_id": "expert", "global_rank": "rank", "pp_rank": "stage"}  # fmt: skip
MIN_ROWS = 2
_TIME = re.compile(
    r"(time|dur|latency|dispatch|combine|forward|backward|fwd|bwd|compute|wait|step|iter|decode|_ms|_us|_s)", re.I
)
_TOKENS = re.compile(r"token|tokens_|num_tok|load|routed", re.I)
_SCALE = ((re.compile(r"(^|[_ (\[])(us|usec|µs)([)\] _]|$)", re.I), 1e-6), (re.compile(r"(^|[_ (\[])ms([)\] _]|$)", re.I), 1e-3),
          (re.compile(r"(^|[_ (\[])(s|sec|seconds)([)\] _]|$)", re.I), 1.0))  # fmt: skip


def recognises(name: str, head: bytes) -> bool:
    """A header with a rank, stage or expert column and a column of times or tokens; no step column."""
    columns = _header(head[:8192].decode("utf-8", "replace"))
    lowered = [c.lower() for c in columns]
    if (
        len(columns) < 2
        or not any(c in AXES for c in lowered)
        or any(c in ("step", "iteration", "timestamp") for c in lowered)
    ):
        return False
    return any(_quantity(c) for c in columns)


def read(artifact: Artifact) -> Iterator[Item]:
    """One table; times in seconds."""
    lines = [line for line in artifact.lines() if line.strip() and not line.startswith("#")]
    if not lines:
        return
    columns = _header("\n".join(lines[:1]))
    rows = [row for row in csv.reader(lines[1:]) if len(row) == len(columns)]
    axis_at = next((i for i, c in enumerate(columns) if c.lower() in AXES), None)
    if axis_at is None:
        return
    axis = AXES[columns[axis_at].lower()]
    rows = [row for row in rows if whole_of(row[axis_at]) is not None]
    if len(rows) < MIN_ROWS:
        return
    found: dict[str, NDArray[Any]] = {axis: np.array([whole_of(row[axis_at]) for row in rows], np.int64)}
    meta: dict[str, object] = {"axis": axis, "times": [], "tokens": []}
    for at, column in enumerate(columns):
        values = [_number(row[at]) for row in rows]
        kind = _quantity(column)
        if at == axis_at or not kind:
            if at != axis_at and any(v is None for v in values):
                found[column.strip().lower()] = np.array([row[at].strip() for row in rows])
            continue
        if any(v is None for v in values):
            continue
        word, scale = kind
        found[column] = np.array(values, np.float64) * scale
        listed = meta[word]
        assert isinstance(listed, list)
        listed.append(column)
    yield Table("rank_table", found, Source(artifact.name, f"{len(rows)} rows"), Scope(run=artifact.name), meta)


def _header(text: str) -> list[str]:
    line = next((x for x in text.lstrip("\ufeff").splitlines() if x.strip() and not x.startswith("#")), "")
    try:
        return [c.strip().strip('"') for c in next(csv.reader([line]), [])]
    except csv.Error:  # a cell longer than any name
        return []


def _quantity(column: str) -> tuple[str, float] | None:
    """Whether a column holds times or tokens, and what turns it into SI."""
    if _TOKENS.search(column):
        return "tokens", 1.0
    for pattern, scale in _SCALE:
        if pattern.search(column) and _TIME.search(column):
            return "times", scale
    return None


def _number(text: str) -> float | None:
    try:
        return float(text.strip().replace("_", ""))
    except ValueError:
        return None
