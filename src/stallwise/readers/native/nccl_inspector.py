"""Records of NCCL's inspector plugin (JSON, one object after another): every collective's size, time and bandwidth."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Scope, Source, Table
from stallwise.readers._cells import whole_of

FORMAT = "NCCL inspector"
EXCLUSIVE = True


def recognises(name: str, head: bytes) -> bool:
    """The keys of its records."""
    return b'"coll_perf"' in head and b'"coll_sn"' in head


def read(artifact: Artifact) -> Iterator[Item]:
    """Table collective.records per rank and communicator."""
    rows: dict[tuple[int, str], list[tuple[str, int, float, float, float]]] = {}
    sizes: dict[tuple[int, str], tuple[int, int]] = {}
    broken = 0
    for record in _objects(artifact.text()):
        if record is None:
            broken += 1
            continue
        head = record.get("header", record)
        call = record.get("coll_perf")
        if not isinstance(call, dict) or not isinstance(head, dict) or not isinstance(head.get("rank"), int):
            continue
        key = head["rank"], str(head.get("id", ""))
        sizes[key] = whole_of(head.get("n_ranks")) or 0, whole_of(head.get("nnodes")) or 0
        try:
            row = (
                str(call["coll"]), int(call["coll_sn"]), float(call["coll_msg_size_bytes"]),
                float(call["coll_exec_time_us"]) * 1e-6, float(call.get("coll_busbw_gbs", 0.0)) * 1e9,
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, OverflowError):
            broken += 1
            continue
        rows.setdefault(key, []).append(row)
    names = ("op", "sequence", "size_bytes", "time_s", "bus_bytes_per_s")
    for (rank, group), found in rows.items():
        columns = {n: np.array(v) for n, v in zip(names, zip(*found, strict=True), strict=True)}
        meta = {"ranks": sizes[rank, group][0], "nodes": sizes[rank, group][1]}
        yield Table("collective.records", columns, Source(artifact.name), Scope(rank=rank, group=group), meta)
    if broken:
        yield Note(f"{broken} records could not be read", Source(artifact.name))


def _objects(text: str) -> Iterator[dict[str, Any] | None]:
    """JSON objects one after another, one a line or pretty-printed, or all in a list."""
    decoder = json.JSONDecoder()
    place = 0
    while (place := text.find("{", place)) >= 0:
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            yield None
            line_end = text.find("\n", place)
            if line_end < 0:
                return
            place = line_end
            continue
        yield value if isinstance(value, dict) else None
