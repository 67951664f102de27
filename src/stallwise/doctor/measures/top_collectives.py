"""Collectives by operation, size and group: time, what of it shows, and the rate on the wires.

One rank alone sees its waiting for the others in the same time, so the rate is that of the quickest tenth of equal collectives:
there the others had come already.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._by_name import by_name
from stallwise.doctor.measures.collectives import TABLE
from stallwise.errors import StallwiseError
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Table
from stallwise.evidence.top import top_table
from stallwise.physics.costs.collectives import bus_factor, op_named
from stallwise.physics.specs.hardware import Gpu, find_gpu
from stallwise.units import Unit, show

ORDER = 1
QUICKEST = 10  # percent
IN_NODE = 8  # ranks at most that one node's links may join


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """One table a rank."""
    for table in evidence.table(TABLE):
        yield from _of_rank(table)


def _of_rank(table: Table) -> Iterator[Item]:
    """Times and counts are those of a mean step."""
    c, meta = table.columns, table.meta
    lo, hi = meta["window_s"]
    inside = (c["start_s"] >= lo - 1e-9) & (c["start_s"] < hi)
    if not inside.any():
        return
    op, size, ranks = c["op"][inside], c["size_bytes"][inside], c["group_size"][inside]
    seconds = (c["end_s"] - c["start_s"])[inside]
    names = np.array([_name(*row) for row in zip(op.tolist(), size.tolist(), ranks.tolist(), strict=True)])
    words, first, code = np.unique(names, return_index=True, return_inverse=True)
    found = by_name(code.astype(np.int64), seconds)
    steps, gpu = max(int(meta["steps"]), 1), find_gpu(meta["gpu"]) if meta["gpu"] else None
    rate, near = np.full(len(found.code), np.nan), np.full(len(found.code), np.nan)
    for i, one in enumerate(found.code.tolist()):
        quick = float(np.percentile(seconds[code == one], QUICKEST))
        at = int(first[one])
        rate[i], near[i] = _on_the_wires(str(op[at]), float(size[at]), int(ranks[at]), quick, gpu)
    columns = {
        "name": words[found.code].astype(object),
        "time_s": found.total / steps,
        "share": found.total / max(hi - lo, 1e-12),
        "exposed_s": found.sums(code.astype(np.int64), c["exposed_s"][inside]) / steps,
        "count": found.count / steps,
        "median_s": found.median,
        "bus_byte_per_s": rate,
        "links_share": near,
    }
    yield top_table("collectives", columns, table.source, table.scope, unit=meta["unit"], left_out=found.left_out,
                    of_whole=float(seconds.sum()) / max(hi - lo, 1e-12))  # fmt: skip


def _name(op: str, size_bytes: float, ranks: int) -> str:
    size = f" of {show(size_bytes, Unit.BYTE)}" if size_bytes > 0 else ""
    return f"{op}{size}" + (f", {ranks} ranks" if ranks > 1 else "")


def _on_the_wires(op: str, size_bytes: float, ranks: int, seconds: float, gpu: Gpu | None) -> tuple[float, float]:
    """Bus bandwidth, and its share of what the card's links give; NaN where size, group or links are not known."""
    nothing = float("nan")
    if size_bytes <= 0 or ranks < 2 or seconds <= 0:
        return nothing, nothing
    try:
        rate = size_bytes * bus_factor(op_named(op), ranks) / seconds
    except StallwiseError:
        return nothing, nothing
    # A larger group leaves the node, and the trace does not tell over which network; a small one may leave it as well.
    known = gpu is not None and ranks <= IN_NODE and gpu.nvlink_byte_per_s > 0
    return rate, min(rate / gpu.nvlink_byte_per_s, 1.0) if known and gpu is not None else nothing
