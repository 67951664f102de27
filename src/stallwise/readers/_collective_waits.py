"""A rank stuck in (or done with) a collective, whoever reported it: watchdog, flight recorder, NCCL RAS or a stack."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from stallwise.evidence.fact import Source, Table

TABLE = "collective.waits"
UNKNOWN = -10  # sequence numbers and counters start at -1


@dataclass(slots=True)
class Wait:
    """One rank and the collective it waits in."""

    rank: int
    group: str = ""
    sequence: int = UNKNOWN
    op: str = ""
    state: str = ""  # "timed out", "scheduled", "started", "completed", "in call"
    elements_in: int = UNKNOWN
    elements_out: int = UNKNOWN
    shape: str = ""
    dtype: str = ""
    enqueued: int = UNKNOWN
    completed: int = UNKNOWN
    time_s: float = float("nan")
    frame: str = ""  # file:line function of the user's code
    via: str = "watchdog"  # who reported it
    line: int = 0


def waits_table(waits: list[Wait], file: str, meta: dict[str, object] | None = None) -> Table:
    """The waits as columns."""
    columns = {f.name: np.array([getattr(w, f.name) for w in waits]) for f in fields(Wait)}
    return Table(TABLE, columns, Source(file), meta=meta or {})
