"""What a click on an event tells beside its name and time: sizes, shapes, launch grid, message, whatever the trace recorded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._operators import NOBODY
from stallwise.doctor.measures._step_index import StepIndex
from stallwise.evidence.timeline import NO_ID
from stallwise.units import Unit, show

MOST_TEXTS = 2_000  # of a step: few steps have as many shapes
LONGEST_VALUE = 200  # letters
# What the trace calls it, and how it is said; other arguments are for programs.
WORDS = {
    "Input Dims": "shapes",
    "Input dims": "shapes",
    "Input type": "types",
    "Concrete Inputs": "arguments",
    "grid": "grid",
    "block": "block",
    "registers per thread": "registers a thread",
    "shared memory": "shared memory",
    "est. achieved occupancy %": "occupancy %",
    "Collective name": "collective",
    "In msg nelems": "elements in",
    "Out msg nelems": "elements out",
    "dtype": "type",
    "Group size": "ranks in the group",
    "Process Group Description": "group",
    "Module Hierarchy": "module",
    "Call stack": "call stack",
    "kernel_file": "file",
    "graph id": "graph",
}


def behind(index: StepIndex, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """Row of the operator that launched each event, NOBODY where it is no device work or nobody is known."""
    view = index.view
    if not len(view.tree) or not len(view):
        return np.full(len(rows), NOBODY, np.int64)
    place = np.minimum(np.searchsorted(view.work, rows), len(view) - 1)
    at = np.where(view.work[place] == rows, view.operator[place], NOBODY)
    return np.where(at >= 0, view.tree.row[np.maximum(at, 0)], NOBODY)


def event_facts(
    index: StepIndex, rows: NDArray[np.intp], operator: NDArray[np.int64]
) -> tuple[list[list[str]], NDArray[np.int64]]:
    """Texts, each once, and for each event the number of its own; NO_ID where the trace tells nothing more."""
    t = index.timeline
    size = np.nan_to_num(np.abs(t.size_bytes[rows]), nan=-1.0)
    theirs = np.where(operator >= 0, t.detail[np.maximum(operator, 0)], NO_ID)
    keys, first, which = np.unique(
        np.stack((t.detail[rows].astype(np.float64), theirs.astype(np.float64), size)),
        axis=1, return_index=True, return_inverse=True,
    )  # fmt: skip
    by_detail: dict[int, list[str]] = {}

    def words(row: int) -> list[str]:
        code = int(t.detail[row])
        if code not in by_detail:
            by_detail[code] = list(_worded(t.details_of(row)))
        return by_detail[code]

    codes: dict[tuple[str, ...], int] = {}
    found = []
    for (_, _, moved), at in zip(keys.T.tolist(), first.tolist(), strict=True):
        texts = [f"size: {show(moved, Unit.BYTE)}"] if moved >= 0 else []
        texts += words(int(rows[at]))
        if operator[at] >= 0:
            texts += [x for x in words(int(operator[at])) if x not in texts]
        known = tuple(texts) in codes or len(codes) < MOST_TEXTS
        found.append(codes.setdefault(tuple(texts), len(codes)) if texts and known else NO_ID)
    return [list(text) for text in codes], np.array(found, np.int64)[which.ravel()]


def _worded(details: dict[str, Any]) -> Iterator[str]:
    for key, word in WORDS.items():
        value = details.get(key)
        if value not in (None, "", [], "[]", 0):
            text = str(value).replace("'", "")
            yield f"{word}: {text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + '...'}"
