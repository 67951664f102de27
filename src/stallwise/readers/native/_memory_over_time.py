"""Bytes alive by kind over the record of an allocator: every allocation counted under what its stack says it is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from stallwise.evidence.catalog.memory import OVER_TIME
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Scope, Source, Table
from stallwise.readers.native._snapshot import CATEGORIES, LEAVING, Moment, category_of

POINTS = 400  # of the picture; in each piece of the record the moment with most alive is kept, so that no peak is lost
NO_FRAMES: list[Any] = []
MOST_ENTRIES = 2_000_000  # beyond, telling kinds apart takes longer than anybody waits


def memory_over_time(trace: list[dict[str, Any]], start: Moment, source: Source, device: int) -> Iterator[Item]:
    """A table of time and bytes of each kind; nothing where the record holds no allocation."""
    if len(trace) < 2 or len(trace) > MOST_ENTRIES:
        return
    column = {kind: n for n, kind in enumerate(CATEGORIES)}
    kinds: dict[int, int] = {}  # by the identity of a stack, which entries share

    def kind_of(frames: list[Any]) -> int:
        if id(frames) not in kinds:
            kinds[id(frames)] = column[category_of(frames)]
        return kinds[id(frames)]

    alive = {address: (kind_of(block["frames"]), float(block["size"])) for address, block in start.live.items()}
    sizes = np.zeros((len(trace) + 1, len(CATEGORIES)))  # after each entry, the first before all
    np.add.at(sizes[0], [kind for kind, _ in alive.values()], [size for _, size in alive.values()])
    for at, entry in enumerate(trace, 1):
        action, address = entry.get("action"), int(entry.get("addr", 0))
        if action == "alloc":
            alive[address] = kind, size = kind_of(entry.get("frames") or NO_FRAMES), float(entry.get("size", 0))
            sizes[at, kind] = size
        elif action in LEAVING and address in alive:
            kind, size = alive.pop(address)
            sizes[at, kind] = -size
    np.cumsum(sizes, axis=0, out=sizes)
    total = sizes[1:].sum(axis=1)
    edges = np.unique(np.linspace(0, len(trace), min(POINTS, len(trace)) + 1).astype(int))
    kept = [begin + int(total[begin:end].argmax()) for begin, end in pairwise(edges.tolist())]
    sizes = np.maximum(sizes[1:][kept], 0.0)
    if not sizes.any():
        return
    times = np.array([float(trace[at].get("time_us", at)) for at in kept]) * 1e-6
    columns = {kind: sizes[:, n] for kind, n in column.items() if sizes[:, n].any()}
    yield Table(OVER_TIME, {"time_s": times - times[0], **columns}, source, Scope(gpu=device))
