"""A rank stuck in (or done with) a collective, whoever reported it: watchdog, flight recorder, NCCL RAS or a stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from stallwise.evidence.fact import Source, Table
from stallwise.late import np
from stallwise.readers._patterns import patterns

TABLE = "collective.waits"
UNKNOWN = -10  # sequence numbers and counters start at -1
Call = tuple[str, str, int]  # function, file and line of a frame
_P = patterns("stacks")


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


def wait_in(frames: Sequence[Call], state: str, via: str, *, wrapped: bool = False) -> Wait | None:
    """The collective that a stack (innermost frame first) stands in, and the first frame above it that is not the library's."""
    inside = [_P["library"], *([_P["wrapper"]] if wrapped else [])]
    for place, (function, file, _) in enumerate(frames):
        if _P["collective"].match(function) and any(p.search(file) for p in inside):
            callers = (
                f"{file}:{line} {name}" for name, file, line in frames[place + 1 :] if not _P["library"].search(file)
            )
            return Wait(-1, op=function.lstrip("_"), state=state, frame=next(callers, ""), via=via)
    return None
