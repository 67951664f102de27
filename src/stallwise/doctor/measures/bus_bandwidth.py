"""How fast the bytes of large collectives move, by process group, and what the GPU's links should give.

Waiting is removed first: of all ranks the last to come sees only the bytes, and where one rank alone was seen, the
quickest tenth of equal collectives stands for that. The expectation is a bound: groups that fit a node are held against
its links, larger ones against the network.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures.clocks import TABLE as MATCHED
from stallwise.doctor.measures.collectives import TABLE as COLLECTIVES
from stallwise.errors import StallwiseError
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Source, Table
from stallwise.physics.costs.collectives import bus_factor, collective_time, op_named
from stallwise.physics.costs.topology import fabric_of
from stallwise.physics.specs.cluster import cluster_of
from stallwise.physics.specs.hardware import find_gpu

ORDER = 55
LARGE_BYTES = 4e6  # below this latency is part of the time
MIN_COUNT = 3
Floats = NDArray[np.float64]


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts by group: exposed time, bus bandwidth and its expectation."""
    own = evidence.table(COLLECTIVES)
    matched = evidence.table(MATCHED)[:1]
    if not own:
        return
    gpu = next((str(t.meta["gpu"]) for t in own if t.meta["gpu"]), "")
    axes = {name: axis for t in own for name, axis in t.meta.get("axes", {}).items()}
    for table in matched or own[:1]:
        whole = table in matched
        for group in np.unique(table.columns["group"]).tolist():
            source = Source(table.source.file, f"group {group}{f' ({axes[group]})' if axes.get(group) else ''}")
            yield from _of_group(table, group, whole, gpu, source)


def _of_group(table: Table, group: str, whole: bool, gpu: str, source: Source) -> Iterator[Fact]:
    c = table.columns
    mine = c["group"] == group
    exposed = c["exposed_s"][mine]
    steps = max(int(table.meta["steps"]), 1)
    typical = np.nanmedian(np.nansum(exposed, axis=0)) if whole else exposed.sum()
    yield Fact(q.GROUP_EXPOSED, float(typical) / steps, source, Scope(group=group), samples=int(mine.sum()))
    large = mine & (c["size_bytes"] >= LARGE_BYTES)
    best: tuple[float, str, float, int, int] | None = None
    for op in np.unique(c["op"][large]).tolist():
        for size in np.unique(c["size_bytes"][large & (c["op"] == op)]).tolist():
            these = large & (c["op"] == op) & (c["size_bytes"] == size)
            ranks = _ranks(table, these, whole)
            if these.sum() < MIN_COUNT or ranks < 2:
                continue
            moved = _moving(table, these, whole)
            if best is None or moved * these.sum() >= 0.999 * best[0]:  # of equals the larger message
                best = (moved * float(these.sum()), op, size, ranks, int(these.sum()))
    if best is not None:
        yield from _against_links(best, gpu, source, group)


def _against_links(best: tuple[float, str, float, int, int], gpu: str, source: Source, group: str) -> Iterator[Fact]:
    total, op, size, ranks, count = best
    seconds = total / count
    try:
        kind = op_named(op)
    except StallwiseError:
        return
    rate = size * bus_factor(kind, ranks) / max(seconds, 1e-9)
    note = f"{op} of {size / 1e6:.0f} MB among {ranks}"
    yield Fact(q.BUS_BANDWIDTH, rate, source, Scope(group=group), samples=count, note=note)
    card = find_gpu(gpu) if gpu else None
    if card is None or card.nvlink_byte_per_s <= 0:
        return
    should = collective_time(kind, size, ranks, fabric_of(cluster_of(card, ranks)))
    low, high = (size * bus_factor(kind, ranks) / t for t in (should.high_s, should.low_s))
    yield Fact(
        q.BUS_EXPECTED, should.bus_byte_per_s, source, Scope(group=group), low=low, high=high,
        note=f"{should.algorithm} on {card.name}",
    )  # fmt: skip


def _ranks(table: Table, these: NDArray[np.bool_], whole: bool) -> int:
    if whole:
        return int(np.median(table.columns["expected"][these]))
    group_sizes = table.columns["group_size"][these]
    world = int(table.meta["world_size"])
    members = table.meta["members"].get(str(table.columns["group"][these][0]), ())
    return int(np.median(group_sizes)) or len(members) or world


def _moving(table: Table, these: NDArray[np.bool_], whole: bool) -> float:
    length = table.columns["end_s"][these] - table.columns["start_s"][these]
    if whole:
        return float(np.median(np.nanmin(length, axis=1)))
    return float(np.quantile(length, 0.1))
