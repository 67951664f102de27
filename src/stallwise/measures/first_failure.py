"""The earliest failure that is nobody's consequence, and tasks or batches in which ranks differ."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.catalog import hang
from stallwise.evidence.catalog.fabric import NCCL_VERSION
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Source

ORDER = -4
FAR_SLOWER = 10.0  # times the median of the other ranks
LONG_S = 30.0  # shorter outliers do not run into timeouts
FEW_RANKS = 4


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts across the logs of all ranks."""
    yield from _first(evidence)
    yield from _uneven(evidence)
    yield from _slow(evidence)
    yield from _versions(evidence)


def _first(evidence: Evidence) -> Iterator[Fact]:
    events = []
    for table in evidence.table("rank.events"):
        c = table.columns
        for i in range(len(table)):
            source = Source(table.source.file, f"line {int(c['line'][i])}")
            time_s = float(c["time_s"][i])
            events.append(
                (
                    math.inf if time_s != time_s else time_s,
                    int(c["line"][i]),
                    int(c["rank"][i]),
                    str(c["text"][i]),
                    source,
                )
            )
    roots = [f for f in [*evidence.all(hang.RANK_ERROR), *evidence.all(hang.PROCESS_KILLED)] if f.note == "root cause"]
    ends = {f.source for f in [*evidence.all(hang.RANK_ERROR), *evidence.all(hang.PROCESS_KILLED)] if f.note}
    if roots:
        fact = roots[0]
        yield Fact(hang.FIRST_FAILURE, fact.value, fact.source, fact.scope, note="the launcher's root cause")
        return
    if events:
        _, _, rank, text, source = min(events, key=lambda e: (e[0], e[1]))
        note = "the log ends with it" if source in ends else ""
        yield Fact(hang.FIRST_FAILURE, text, source, Scope(rank=None if rank < 0 else rank), note=note)
        return
    for fact in evidence.all(hang.RANK_ERROR) or evidence.all(hang.PROCESS_KILLED):
        yield Fact(hang.FIRST_FAILURE, fact.value, fact.source, fact.scope)
        return


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
    tasks: dict[str, list[tuple[float, int, Source]]] = defaultdict(list)
    for table in evidence.table("rank.tasks"):
        c = table.columns
        for i in range(len(table)):
            source = Source(table.source.file, f"line {int(c['line'][i])}")
            tasks[str(c["task"][i])].append((float(c["seconds"][i]), int(c["rank"][i]), source))
    for task, found in tasks.items():
        if len({rank for _, rank, _ in found}) < FEW_RANKS:
            continue
        median = float(np.median([s for s, _, _ in found]))
        late = sorted((s, r, src) for s, r, src in found if s > FAR_SLOWER * median and s > LONG_S)
        if late and len(late) <= len(found) // 2:
            worst = late[-1]
            names = ", ".join(str(r) for _, r, _ in late[:8])
            who = f"rank{'s' if len(late) > 1 else ''} {names}"
            text = f"{who} took up to {worst[0]:,.0f} s for '{task.strip()[:60]}', the others {median:,.1f} s"
            yield Fact(hang.SLOW_RANK, text, worst[2], Scope(rank=worst[1]), samples=len(found), note=task)


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
