"""Operation tables of one file or of many put together: one set of labels, and a replica and a stage for every row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from stallwise.evidence.fact import Table
from stallwise.evidence.operations import INTEGERS, TIMES, UNKNOWN, Work, numbered
from stallwise.late import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Columns: TypeAlias = "dict[str, NDArray[Any]]"


@dataclass(frozen=True, slots=True)
class Member:
    """Who a worker is to its job; UNKNOWN and empty where nobody says, or where several ranks are one worker."""

    rank: int
    host: str
    counted: bool = False  # replicas were counted here, not by the job


Members: TypeAlias = "dict[tuple[int, int], Member]"  # by replica and stage


@dataclass(slots=True, eq=False)
class Rows:
    """Rows of all tables, under one set of labels."""

    columns: Columns
    labels: list[str]
    works: list[int]
    members: Members = field(default_factory=dict)


def together(tables: Sequence[Table]) -> Rows:
    """One table of all."""
    labels: dict[str, int] = {}
    hosts: dict[str, int] = {}
    works: list[int] = []
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in (*INTEGERS, "rank", "host", *TIMES)}
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
            if name == "host":
                values = _hosts(table, hosts)
            parts[name].append(np.full(size, UNKNOWN, np.int32) if values is None else values)
        parts["label"][-1] = np.array(codes, np.int32)[table.columns["label"]]
    columns = {name: values[0] if len(values) == 1 else np.concatenate(values) for name, values in parts.items()}
    host = columns.pop("host")
    rank = _place(columns)
    if (columns["step"] < 0).all():
        columns["step"] = _steps(columns, works)
    counted = any(table.meta.get("traced") for table in tables)
    return Rows(columns, list(labels), works, _members(columns, rank, host, list(hosts), counted))


def _hosts(table: Table, hosts: dict[str, int]) -> NDArray[Any] | None:
    """The host of every row, or of the file."""
    whole, column = table.meta.get("host"), table.columns.get("host")
    if column is not None:
        codes = [hosts.setdefault(name, len(hosts)) for name in table.meta["hosts"]]
        return np.asarray(np.array([*codes, UNKNOWN], np.int32)[column])
    return np.full(len(table), hosts.setdefault(whole, len(hosts)), np.int32) if whole else None


def _members(columns: Columns, rank: NDArray[Any], host: NDArray[Any], hosts: list[str], counted: bool) -> Members:
    """Who each worker is, where any row says."""
    if not len(rank) or (int(rank.max()) < 0 and int(host.max()) < 0):
        return {}
    stages = int(columns["stage"].max()) + 1
    keys, at = numbered(columns["replica"].astype(np.int64) * stages + columns["stage"])
    least, most, where = (np.full(len(keys), start) for start in (np.iinfo(np.int64).max, UNKNOWN, UNKNOWN))
    np.minimum.at(least, at, rank)
    np.maximum.at(most, at, rank)
    np.maximum.at(where, at, host)
    return {
        (int(key) // stages, int(key) % stages): Member(
            int(most[i]) if least[i] == most[i] else UNKNOWN, hosts[where[i]] if where[i] >= 0 else "", counted
        )
        for i, key in enumerate(keys.tolist())
    }


def _place(columns: Columns) -> NDArray[Any]:
    """A stage and a replica for every row: of those that only say their rank, each rank is a replica of one stage."""
    stage, replica = columns["stage"], columns["replica"]
    rank: NDArray[Any] = columns.pop("rank")
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
    return rank


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
