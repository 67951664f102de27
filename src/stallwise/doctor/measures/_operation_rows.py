"""Operation tables of one file or of many put together: one set of labels, and a replica and a stage for every row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from stallwise.evidence.fact import Table
from stallwise.evidence.operations import INTEGERS, TIMES, UNKNOWN, Work
from stallwise.late import np
from stallwise.physics.sim.job.grid import numbered

if TYPE_CHECKING:
    from numpy.typing import NDArray

Columns: TypeAlias = "dict[str, NDArray[Any]]"


def together(tables: Sequence[Table]) -> tuple[Columns, list[str], list[int]]:
    """Rows of all tables, under one set of labels."""
    labels: dict[str, int] = {}
    works: list[int] = []
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in (*INTEGERS, "rank", *TIMES)}
    for table in tables:
        codes = []
        for name, work in zip(table.meta["labels"], table.meta["works"], strict=True):
            if name not in labels:
                labels[name] = len(labels)
                works.append(work)
            codes.append(labels[name])
        size = len(table)
        for name in parts:
            values = table.columns.get(name)
            if name == "rank" and values is None and table.scope.rank is not None:
                values = np.full(size, table.scope.rank, np.int32)
            parts[name].append(np.full(size, UNKNOWN, np.int32) if values is None else values)
        parts["label"][-1] = np.array(codes, np.int32)[table.columns["label"]]
    columns = {name: values[0] if len(values) == 1 else np.concatenate(values) for name, values in parts.items()}
    _place(columns)
    if (columns["step"] < 0).all():
        columns["step"] = _steps(columns, works)
    return columns, list(labels), works


def _place(columns: Columns) -> None:
    """A stage and a replica for every row: of those that only say their rank, each rank is a replica of one stage."""
    stage, replica = columns["stage"], columns["replica"]
    rank = columns.pop("rank")
    if (stage < 0).any():
        columns["stage"] = stage = np.where(stage < 0, 0, stage)
    bare = replica < 0
    if bare.any():
        key = np.where(rank >= 0, rank, 0)
        place = key.copy()
        for one in np.unique(stage[bare]):  # ranks of a stage in their order are its replicas
            mine = bare & (stage == one)
            if len(np.unique(stage)) > 1:
                place[mine] = numbered(key[mine])[1]
        columns["replica"] = np.where(bare, place, replica)


def _steps(columns: Columns, works: Sequence[int]) -> NDArray[Any]:
    """Where nobody numbered them a step ends with the optimizer, on each worker by itself."""
    step = np.zeros(len(columns["label"]), np.int32)
    ends = [label for label, work in enumerate(works) if work == Work.OPTIMIZER]
    if not ends:
        return step
    last = max(ends, key=lambda label: columns["start_s"][columns["label"] == label].max(initial=-np.inf))
    worker = columns["replica"].astype(np.int64) * (int(columns["stage"].max()) + 1) + columns["stage"]
    order = np.lexsort((columns["start_s"], worker))
    done = np.cumsum(columns["label"][order] == last)
    own = worker[order]
    first = np.concatenate(([True], own[1:] != own[:-1]))
    base = np.maximum.accumulate(np.where(first, done - (columns["label"][order] == last), 0))
    step[order] = done - base - (columns["label"][order] == last)
    return step
