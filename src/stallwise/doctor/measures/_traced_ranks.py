"""Ranks of which each recorded its own operations, put together: who is which stage of which replica, on one clock.

Ranks that hand over to each other are one pipeline, and its stages begin one after the other. Without hand-offs every rank is a
replica.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stallwise.doctor.measures._matched import one_per_rank
from stallwise.evidence.catalog.distributed import CLOCK_OFFSET
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Table
from stallwise.evidence.operations import UNKNOWN, Work

_OTHER_SIDE = {"send": ("recv", "send-recv"), "recv": ("send", "send-recv"), "send-recv": ("send", "recv", "send-recv")}
Pipelines = list[list[int]]


@dataclass(frozen=True, slots=True)
class Traced:
    """Tables with stage and replica in every row."""

    tables: list[Table]
    missing: list[int]  # ranks that others name and whose recording is not here
    pipelined: bool


def traced_ranks(evidence: Evidence, tables: Sequence[Table]) -> Traced | None:
    """None where a single rank is known, or where nobody can tell which stage a rank is."""
    chosen, _ = one_per_rank(list(tables))
    by_rank = {int(t.scope.rank): t for t in chosen if t.scope.rank is not None}
    if len(by_rank) < 2:
        return None
    origin_s = min(float(t.meta["origin_s"]) for t in chosen)
    shift = {
        rank: float(t.meta["origin_s"]) - origin_s + evidence.value(CLOCK_OFFSET, 0.0, rank=rank)
        for rank, t in by_rank.items()
    }
    first = {rank: _first_forward_s(t) + shift[rank] for rank, t in by_rank.items()}
    pipelines = _pipelines(by_rank, first)
    if pipelines is None:
        return None
    laid = [
        _laid(by_rank[rank], replica, stage, shift[rank])
        for replica, ranks in enumerate(pipelines)
        for stage, rank in enumerate(ranks)
        if rank in by_rank
    ]
    missing = sorted({rank for ranks in pipelines for rank in ranks} - by_rank.keys())
    return Traced(laid, missing, max(map(len, pipelines)) > 1)


def _laid(table: Table, replica: int, stage: int, shift_s: float) -> Table:
    size = len(table)
    known = np.asarray(table.columns["stage"])
    columns = {
        **table.columns, "start_s": table.columns["start_s"] + shift_s, "replica": np.full(size, replica),
        "stage": np.where(known >= 0, known.max(initial=UNKNOWN), stage), "rank": np.full(size, int(table.scope.rank or 0)),
    }  # fmt: skip
    return replace(table, columns=columns)


def _first_forward_s(table: Table) -> float:
    """When a usual step's first forward begins."""
    c = table.columns
    forward = c["label"] == table.meta["works"].index(int(Work.FORWARD))
    if not forward.any():
        return 0.0
    steps, at = np.unique(c["step"][forward], return_inverse=True)
    begin = np.full(len(steps), np.inf)
    np.minimum.at(begin, at, c["start_s"][forward])
    return float(np.mean(begin))


def _pipelines(by_rank: Mapping[int, Table], first: Mapping[int, float]) -> Pipelines | None:
    """Ranks of each pipeline in the order of its stages; every rank by itself where none hands over."""
    ranks = sorted(by_rank)
    if not any(t.meta["hand_offs"] for t in by_rank.values()):
        return [[rank] for rank in ranks]
    edges = _edges(by_rank)
    parts = _connected(edges) if edges else _by_groups(by_rank, first)
    if parts is None:
        return None
    return _ordered(parts, first)


def _edges(by_rank: Mapping[int, Table]) -> list[tuple[int, int]]:
    """Who hands over to whom. Where a number counts the ranks of some group, the group is the one in which the other side fits."""
    world = sorted({r for t in by_rank.values() for g in t.meta["groups"] for r in g} | set(by_rank))
    options: dict[tuple[int, str, int], list[int]] = {}
    for rank, table in by_rank.items():
        groups = [world, *(g for g in table.meta["groups"] if len(g) < len(world))]
        for op, peer, of_all in table.meta["hand_offs"]:
            if peer >= 0:
                places = [peer] if of_all else [g[peer] for g in groups if peer < len(g)]
                options[rank, op, peer] = [r for r in dict.fromkeys(places) if r != rank]
    for _ in range(len(by_rank)):
        kept = {key: [r for r in found if _answers(key, r, options, by_rank)] for key, found in options.items()}
        if kept == options:
            break
        options = kept
    return sorted({(rank, found[0]) for (rank, _, _), found in options.items() if found})


def _answers(
    key: tuple[int, str, int],
    other: int,
    options: Mapping[tuple[int, str, int], list[int]],
    by_rank: Mapping[int, Table],
) -> bool:
    """The other side takes what this one sends; of a rank that is not here nobody knows."""
    rank, op, _ = key
    if other not in by_rank:
        return True
    return any(who == other and its in _OTHER_SIDE[op] and rank in found for (who, its, _), found in options.items())


def _connected(edges: Iterable[tuple[int, int]]) -> list[set[int]]:
    parts: list[set[int]] = []
    for edge in edges:
        mine = set(edge).union(*(p for p in parts if p & set(edge)))
        parts = [p for p in parts if not p & mine] + [mine]
    return parts


def _by_groups(by_rank: Mapping[int, Table], first: Mapping[int, float]) -> list[set[int]] | None:
    """Nobody names the other side: the groups whose ranks begin at the most different times are the pipelines."""
    everyone = set(by_rank)
    groups = {frozenset(g) for t in by_rank.values() for g in t.meta["groups"] if len(g) > 1}
    families: dict[int, list[frozenset[int]]] = {}
    for size in sorted({len(g) for g in groups}):
        for group in sorted((g for g in groups if len(g) == size), key=sorted):
            key = next(
                (k for k, family in families.items() if len(family[0]) == size and all(not group & g for g in family)),
                len(families),
            )
            families.setdefault(key, []).append(group)
    whole = [family for family in families.values() if everyone <= frozenset().union(*family)]
    if not whole:
        return [everyone] if not groups else None

    def distance_s(family: list[frozenset[int]]) -> float:
        return min(
            float(np.ptp([first[r] for r in g if r in first])) / max(len(g) - 1, 1)
            for g in family
            if len(g & everyone) > 1
        )

    return [set(g) for g in max(whole, key=distance_s)]


def _ordered(parts: list[set[int]], first: Mapping[int, float]) -> Pipelines | None:
    """Stages begin one after the other; where a rank is missing, its pipeline runs through the ranks as the others do."""
    deepest = max(map(len, parts))
    found: Pipelines = []
    upward = [sorted(p, key=lambda r: first[r]) == sorted(p) for p in parts if p <= first.keys()]
    for part in sorted(parts, key=min):
        if part <= first.keys():
            found.append(sorted(part, key=lambda r: (first[r], r)))
        elif len(part) == deepest and upward and all(upward):
            found.append(sorted(part))
    return found if found and all(len(p) == deepest for p in found) else None
