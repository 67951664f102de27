"""The earliest failure that is nobody's consequence, and tasks or batches in which ranks differ."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from stallwise.evidence.catalog import hang
from stallwise.evidence.catalog.fabric import FABRIC_RANKS, NCCL_VERSION
from stallwise.evidence.event import Event, Role
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Source, Table

ORDER = -4
FAR_SLOWER = 10.0  # times the median of the other ranks
LONG_S = 30.0  # shorter outliers do not run into timeouts
FEW_RANKS = 4
REPORT_LINES = 60  # of a launcher on one rank: its exit code and the traceback it left
SEVERAL = 2  # ranks with one error, from which "all of them" means something
OWN_FAILURES = (
    "process-killed", "uncaught-error", "process-crashed", "process-aborted", "out-of-memory", "host-out-of-memory", "cuda-error",
    "library-error", "illegal-access", "gpu-lost", "memory-fault", "loader-worker-died", "save-failed", "kernel-resources",
)  # fmt: skip


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts across the logs of all ranks."""
    yield from _first(evidence)
    yield from _uneven(evidence)
    yield from _slow(evidence)
    yield from _versions(evidence)


def _first(evidence: Evidence) -> Iterator[Fact]:
    """The launcher's own word, else the earliest error that follows from no other. An error of all ranks has no first."""
    attributed = _attributed(evidence)
    own = [e for e in attributed if e.kind in OWN_FAILURES and e.role is Role.ROOT]
    everywhere = _everywhere(evidence, own)
    failures = [e for e in own if e.kind not in everywhere]
    if own and not failures:
        return
    if root := _launcher(attributed, failures, everywhere):
        yield root
    elif failures:
        first = min(failures, key=lambda e: (math.inf if e.time_s != e.time_s else e.time_s, _line(e)))
        note = "the log ends with it" if first.ends_log else ""
        yield Fact(hang.FIRST_FAILURE, first.text[:240], first.source, first.scope, note=note)


def _attributed(evidence: Evidence) -> list[Event]:
    """Events in the order of their lines; a launcher's report names the rank above what it quotes."""
    attributed: list[Event] = []
    rank: tuple[str, int, int | None] = ("", 0, None)
    for event in sorted(evidence.events, key=lambda e: (e.source.file, _line(e))):
        if event.kind == "launcher-rank":
            rank = (event.source.file, _line(event), event.scope.rank)
        elif event.scope.rank is None and event.source.file == rank[0] and _line(event) - rank[1] < REPORT_LINES:
            event = replace(event, scope=replace(event.scope, rank=rank[2]))
        attributed.append(event)
    return attributed


def _everywhere(evidence: Evidence, own: list[Event]) -> set[str]:
    """Kinds of error that every rank has that speaks at all, and more than one: none of them died of another."""
    world = max((int(f.number) for q in (hang.HANG_WORLD, FABRIC_RANKS) for f in evidence.all(q)), default=0)
    speaking = {e.scope.rank for e in evidence.events if e.scope.rank is not None}
    ranks: dict[str, set[int]] = defaultdict(set)
    for event in own:
        if event.scope.rank is not None:
            ranks[event.kind].add(event.scope.rank)
    return {kind for kind, names in ranks.items() if len(names) >= max(SEVERAL, world, len(speaking))}


def _launcher(attributed: list[Event], failures: list[Event], everywhere: set[str]) -> Fact | None:
    """torchrun names the rank it saw fail first; an error of that rank says why, its exit code only that it did."""
    for title in (e for e in attributed if e.kind == "launcher-root-cause"):
        below = [
            e for e in attributed if e.source.file == title.source.file and 0 < _line(e) - _line(title) < REPORT_LINES
        ]
        rank = next((e.scope.rank for e in below if e.kind == "launcher-rank"), None)
        exits = [e for e in below if e.kind in ("process-exit", "process-killed") and e.scope.rank == rank]
        why = [e for e in failures if e.scope.rank == rank is not None] or ([] if everywhere else exits)
        if why:
            first = why[0]
            return Fact(
                hang.FIRST_FAILURE, first.text[:240], first.source, Scope(rank=rank), note="the launcher's root cause"
            )
    return None


def _line(event: Event) -> int:
    return int(event.source.where.removeprefix("line ") or 0)


def _uneven(evidence: Evidence) -> Iterator[Fact]:
    """Different numbers of batches for the same phase."""
    totals: dict[str, dict[int, tuple[int, Source]]] = defaultdict(dict)
    for table in evidence.table("rank.batches"):
        c = table.columns
        for i in range(len(table)):
            if int(c["rank"][i]) >= 0:
                source = Source(table.source.file, f"line {int(c['line'][i])}")
                totals[str(c["phase"][i])][int(c["rank"][i])] = int(c["of"][i]), source
    for phase, by_rank in totals.items():
        counts = defaultdict(list)
        for rank, (of, _) in by_rank.items():
            counts[of].append(rank)
        if len(counts) > 1:
            parts = [
                f"{of} batches on rank{'s' if len(r) > 1 else ''} {', '.join(map(str, sorted(r)[:8]))}"
                for of, r in sorted(counts.items())
            ]
            least = min(counts)
            source = by_rank[counts[least][0]][1]
            names = {"val": "validation", "eva": "evaluation", "tra": "training", "tes": "test"}
            name = names.get(phase.removeprefix("planned ").strip(), "the data")
            yield Fact(hang.BATCHES_UNEVEN, f"{name} has " + ", ".join(parts), source, samples=len(by_rank))


def _slow(evidence: Evidence) -> Iterator[Fact]:
    """One task that took some ranks far longer than the rest."""
    tasks: dict[str, list[Table]] = defaultdict(list)
    for table in evidence.table("rank.tasks"):
        tasks[table.meta["task"]].append(table)
    for task, parts in tasks.items():
        if len({rank for table in parts for rank in np.unique(table.columns["rank"])}) < FEW_RANKS:
            continue
        seconds = np.concatenate([table.columns["seconds"] for table in parts])
        median = float(np.median(seconds))
        late = sorted(
            (float(c["seconds"][i]), int(c["rank"][i]), int(c["line"][i]), table.source.file)
            for table, c in ((table, table.columns) for table in parts)
            for i in np.flatnonzero(c["seconds"] > max(FAR_SLOWER * median, LONG_S))
        )
        if late and len(late) <= len(seconds) // 2:
            worst = late[-1]
            names = ", ".join(str(r) for _, r, _, _ in late[:8])
            who = f"rank{'s' if len(late) > 1 else ''} {names}"
            text = f"{who} took up to {worst[0]:,.0f} s for '{task.strip()[:60]}', the others {median:,.1f} s"
            yield Fact(
                hang.SLOW_RANK,
                text,
                Source(worst[3], f"line {worst[2]}"),
                Scope(rank=worst[1]),
                samples=len(seconds),
                note=task,
            )


def _versions(evidence: Evidence) -> Iterator[Fact]:
    """NCCL versions that differ between nodes or between the logs of ranks; packages are compared with packages."""
    for kind in ("log", "package"):
        places: dict[str, set[str]] = defaultdict(set)  # version: where
        sources: dict[str, Source] = {}
        for fact in evidence.all(NCCL_VERSION):
            if (fact.note == "package") == (kind == "package"):
                version = str(fact.value).split("+")[0]
                places[version].add(fact.scope.node or fact.source.file)
                sources.setdefault(version, fact.source)
        if len(places) > 1:
            text = ", ".join(f"{v} on {' '.join(sorted(where)[:8])}" for v, where in sorted(places.items()))
            yield Fact(hang.NCCL_VERSIONS, text, next(iter(sources.values())), samples=len(places), note=kind)
