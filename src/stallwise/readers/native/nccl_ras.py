"""NCCL RAS status (`ncclras -f json`, NCCL 2.28 and newer): live counts of collectives per rank, and missing ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog.hang import HANG_MISSING, HANG_WORLD, PEER_LOST
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.readers._cells import json_of, objects_under, whole_of
from stallwise.readers._collective_waits import Wait, waits_table

FORMAT = "NCCL RAS"
CAPTURE = "ncclras -f json > ras.json"
EXCLUSIVE = True


def recognises(name: str, head: bytes) -> bool:
    """JSON with communicators and counts."""
    return (
        head.lstrip()[:1] == b"{"
        and b'"communicators"' in head
        and (b'"collective_counts"' in head or b'"missing_ranks' in head)
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """One wait per rank and communicator: the sequence is the sum of its counts."""
    data = json_of(artifact.text(), artifact.name, "ask ncclras again")
    source = Source(artifact.name)
    waits: list[Wait] = []
    for place, comm in enumerate(objects_under(data, "communicators")):
        group = str(comm.get("hash", place))
        if (size := whole_of(comm.get("size"))) is not None:
            yield Fact(HANG_WORLD, float(size), source, Scope(group=group))
        missing = []
        for rank in objects_under(comm, "missing_ranks"):
            status = rank.get("status")
            state = ", ".join(k for k, v in status.items() if v) if isinstance(status, dict) else "missing"
            missing.append(str(rank.get("rank")))
            yield Fact(
                PEER_LOST, f"rank {rank.get('rank')} on {rank.get('host')}: {state}", source, note=str(rank.get("host"))
            )
        if missing:
            yield Fact(HANG_MISSING, f"ranks {', '.join(missing)}", source, Scope(group=group), note="RAS")
        waits += [w for rank in objects_under(comm, "ranks") if (w := _wait(rank, group)) is not None]
    if waits:
        yield waits_table(waits, artifact.name)


def _wait(rank: dict[str, Any], group: str) -> Wait | None:
    counts = rank.get("collective_counts")
    if not isinstance(counts, dict) or not isinstance(rank.get("rank"), int):
        return None
    total = sum(v for v in counts.values() if isinstance(v, int))
    return Wait(rank=rank["rank"], group=group, sequence=total, state="counted", enqueued=total, via="RAS")
