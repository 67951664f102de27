"""Bytes alive by kind over the record of an allocator: every allocation counted under what its stack says it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stallwise.evidence.catalog.memory import COURSE
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Scope, Source, Table
from stallwise.readers.native._snapshot import CATEGORIES, LEAVING, Moment, category_of

POINTS = 400  # of the picture; in each piece of the record the moment with most alive is kept, so that no peak is lost
MOST_ENTRIES = 2_000_000  # beyond, telling kinds apart takes longer than anybody waits


def course_of(trace: list[dict[str, Any]], start: Moment, source: Source, device: int) -> Iterator[Item]:
    """A table of time and bytes of each kind; nothing where the record holds no allocation."""
    if len(trace) < 2 or len(trace) > MOST_ENTRIES:
        return
    column = {kind: n for n, kind in enumerate(CATEGORIES)}
    kinds: dict[int, int] = {}  # by the identity of a stack, which entries share
    alive: dict[int, tuple[int, float]] = {}  # address -> kind and size
    now = np.zeros(len(CATEGORIES))
    for address, block in start.live.items():
        kind = column[category_of(block["frames"])]
        alive[address] = (kind, float(block["size"]))
        now[kind] += block["size"]
    edges = np.unique(np.linspace(0, len(trace), min(POINTS, len(trace)) + 1).astype(int))
    rows, piece, best = [], 1, (-1.0, 0, now)
    total = float(now.sum())
    for at, entry in enumerate(trace):
        if at >= edges[piece]:
            rows.append(best)
            piece, best = piece + 1, (-1.0, at, now)
        action, address = entry.get("action"), int(entry.get("addr", 0))
        if action == "alloc":
            frames = entry.get("frames") or []
            kind = kinds.setdefault(id(frames), -1) if frames else column["unexplained"]
            if kind < 0:
                kind = kinds[id(frames)] = column[category_of(frames)]
            size = float(entry.get("size", 0))
            alive[address] = (kind, size)
            now[kind] += size
            total += size
        elif action in LEAVING and address in alive:
            kind, size = alive.pop(address)
            now[kind] -= size
            total -= size
        if total > best[0]:
            best = (total, at, now.copy())
    rows.append(best)
    times = np.array([float(trace[at].get("time_us", at)) for _, at, _ in rows]) * 1e-6
    sizes = np.maximum(np.array([size for _, _, size in rows]), 0.0)
    if not sizes.any():
        return
    columns = {kind: sizes[:, n] for kind, n in column.items() if sizes[:, n].any()}
    yield Table(COURSE, {"time_s": times - times[0], **columns}, source, Scope(gpu=device))
