"""Collectives by operation, size and group: time, what of it shows, and the rate on the wires.

One rank alone sees its waiting for the others in the same time, so the rate is that of the quickest tenth of equal collectives:
there the others had come already.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.costs.collectives import bus_factor, op_named
from stallwise.errors import StallwiseError
from stallwise.evidence.evidence import Item
from stallwise.evidence.timeline import Timeline
from stallwise.evidence.top import top_table
from stallwise.measures._by_name import by_name
from stallwise.measures._collective_rows import collective_rows
from stallwise.measures._trace_view import view_of
from stallwise.specs.hardware import Gpu
from stallwise.units import Unit, show

QUICKEST = 10  # percent
IN_NODE = 8  # ranks at most that one node's links may join


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Times and counts are those of a mean step."""
    rows = collective_rows(timeline)
    if rows is None:
        return
    windows = rows.windows
    lo, hi = float(windows.device[0]), float(windows.device[-1])
    inside = (rows.start >= lo - 1e-9) & (rows.start < hi)
    if not inside.any():
        return
    names = [
        _name(op, size, ranks)
        for op, size, ranks in zip(rows.op, rows.size_bytes.tolist(), rows.group_size.tolist(), strict=True)
    ]
    words, which = np.unique(np.array(names, dtype=object), return_inverse=True)
    code, seconds = which[inside].astype(np.int64), (rows.end - rows.start)[inside]
    found = by_name(code, seconds)
    steps, gpu = max(len(windows), 1), view_of(timeline).gpu
    rate, near = np.full(len(found.code), np.nan), np.full(len(found.code), np.nan)
    for i, c in enumerate(found.code.tolist()):
        first = int(np.flatnonzero(which == c)[0])
        quick = float(np.percentile(seconds[code == c], QUICKEST))
        size, ranks = float(rows.size_bytes[first]), int(rows.group_size[first])
        rate[i], near[i] = _on_the_wires(rows.op[first], size, ranks, quick, gpu)
    columns = {
        "name": words[found.code],
        "time_s": found.total / steps,
        "share": found.total / max(hi - lo, 1e-12),
        "exposed_s": found.sums(code, rows.exposed[inside]) / steps,
        "count": found.count / steps,
        "median_s": found.median,
        "bus_byte_per_s": rate,
        "roof_share": near,
    }
    yield top_table("collectives", columns, timeline.source, timeline.scope, unit=windows.unit, left_out=found.left_out)


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
    # A larger group leaves the node, and the trace does not tell over which network.
    known = gpu is not None and ranks <= IN_NODE and gpu.nvlink_byte_per_s > 0
    return rate, min(rate / gpu.nvlink_byte_per_s, 1.0) if known and gpu is not None else nothing
