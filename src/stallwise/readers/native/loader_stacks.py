"""Stacks counted inside one loader worker by our recorder: the lines of the user's that make batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Scope, Source
from stallwise.evidence.user_lines import LOADER_WORKER, user_lines

FORMAT = "stacks of a loader worker"
CAPTURE = "stallwise run -- python train.py"
EXCLUSIVE = True
HEAD = b'{"k":"loader",'
WAITS = "multiprocessing/queues.py"  # outermost inside the worker's loop: it waits for its next order


def recognises(name: str, head: bytes) -> bool:
    """Our own first line."""
    return head.lstrip().startswith(HEAD)


def read(artifact: Artifact) -> Iterator[Item]:
    """One table of lines; counts are cumulative, so the last whole line of counts holds them all."""
    source, rank, lost = Source(artifact.name), None, 0
    names: dict[int, str] = {}
    stacks: list[dict[str, Any]] = []
    for text in artifact.lines():
        try:
            entry = json.loads(text)
            kind = entry["k"]
            if kind == "loader":
                rank = int(entry["rank"])
            elif kind == "line":
                names[int(entry["id"])] = str(entry["at"])
            elif kind == "worker_stacks":
                stacks = [{"lines": [int(n) for n in s["lines"]], "count": int(s["count"])} for s in entry["stacks"]]
        except (ValueError, KeyError, TypeError):
            lost += bool(text.strip())
    if lost:
        yield Note(f"{lost} torn or foreign lines were left out", source)
    spelled = [([names.get(n, "?") for n in s["lines"]], s["count"]) for s in stacks]
    busy = [(LOADER_WORKER, lines, count) for lines, count in spelled if lines and WAITS not in lines[-1]]
    table = user_lines(busy, source, Scope(rank=rank))
    if table is not None:
        yield table
