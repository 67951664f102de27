"""The operation table: what every worker of a job did, step by step, whatever program recorded it.

A worker is one pipeline stage of one data-parallel replica; ranks of one tensor-parallel group run in lock step and count as one.
A `Table` of KIND has these columns, and in its meta `labels` (names as recorded) and `works` (the kind of work of each label). `rank`
stands for replica and stage where those are unknown; `host` counts the names in meta `hosts`, or meta `host` is that of the file.
In meta, `laid_out` says that no moments are known, `traced` that the table is of one rank whose stage only its peers tell.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from stallwise.late import np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from stallwise.evidence.fact import Table

KIND = "operations"
DENSE = 1 << 22  # values this close together are numbered by a lookup table, others by sorting
UNKNOWN = -1
PLACES = ("replica", "stage", "tensor", "rank")
INTEGERS = ("replica", "stage", "tensor", "step", "microbatch", "chunk", "order", "label")
TIMES = ("start_s", "duration_s")


class Work(IntEnum):
    """What an operation does, as far as dependencies go."""

    FORWARD = 0
    BACKWARD = 1  # both gradients, or the half that the stage before waits for
    WEIGHT_GRAD = 2  # the half that nobody waits for
    FORWARD_SEND = 3
    FORWARD_RECEIVE = 4
    BACKWARD_SEND = 5
    BACKWARD_RECEIVE = 6
    GRADIENT_SYNC = 7
    PARAMETER_GATHER = 8
    OPTIMIZER = 9
    GARBAGE = 10  # a collection of Python's
    INPUT = 11
    CHECKPOINT = 12
    OTHER = 13
    COMPUTE = 14  # forward and backward in one


PASSES = (Work.FORWARD, Work.BACKWARD, Work.WEIGHT_GRAD, Work.COMPUTE)
SENDS = (Work.FORWARD_SEND, Work.BACKWARD_SEND)
RECEIVES = (Work.FORWARD_RECEIVE, Work.BACKWARD_RECEIVE)
COLLECTIVES = (Work.GRADIENT_SYNC, Work.PARAMETER_GATHER)
COMMUNICATION = (*SENDS, *RECEIVES, *COLLECTIVES)


def workers_in(tables: Iterable[Table]) -> int:
    """How many distinct replicas, stages or ranks."""
    found: dict[str, set[int]] = {place: set() for place in PLACES}
    for table in tables:
        for place, seen in found.items():
            seen.update(numbered(table.columns[place])[0].tolist())
    return max(map(len, found.values()))


def numbered(values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The distinct values in order, and the place of each among them."""
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int32)
    least, most = int(values.min()), int(values.max())
    if most - least >= DENSE:
        found, at = np.unique(values, return_inverse=True)
        return found.astype(np.int64), at.astype(np.int32)
    seen = np.zeros(most - least + 1, bool)
    from_least = values if least == 0 else values - least
    seen[from_least] = True
    return np.flatnonzero(seen) + least, (np.cumsum(seen, dtype=np.int32) - 1)[from_least]
