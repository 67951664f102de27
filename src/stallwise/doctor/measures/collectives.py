"""The collectives of one rank: a table for comparing ranks, and what can be said of this rank alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._collective_names import REDUCTIONS
from stallwise.doctor.measures._collective_rows import CollectiveRows, collective_rows
from stallwise.doctor.measures._rank_index import KINDS, computing, seconds_by_kind
from stallwise.doctor.measures._trace_view import view_of
from stallwise.doctor.measures._vocabulary import Work, work_of_kernel
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source, Table
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.timeline import Kind, Timeline

TABLE = "collectives"
KERNEL_TABLE = "rank_kernels"
KERNELS_KEPT = 40  # names by time; enough to tell slow clocks from more work

# Below this a reduction costs its launch and latency, not its bytes: with 5 to 20 us a hop and 50 to 400 GB/s a link
# the knee lies between 1 and 8 MB (nccl-tests curves flatten there); DDP's own bucket is 25 MB.
SMALL_BYTES = 1e6


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """The table and the rank's own facts."""
    info = timeline.distributed
    world = info.get("world_size")
    if isinstance(world, (int, float)) and world >= 1:
        yield Fact(q.WORLD_SIZE, float(world), timeline.source, timeline.scope)
    rows = collective_rows(timeline)
    if rows is None:
        return
    booked = seconds_by_kind(timeline, rows)
    columns: dict[str, NDArray[np.generic]] = {
        "start_s": rows.start, "end_s": rows.end, "issued_s": rows.issued, "exposed_s": rows.exposed,
        "size_bytes": rows.size_bytes, "step": rows.step, "index": rows.index, "group_size": rows.group_size,
        "received_bytes": rows.received_bytes, "split_spread": rows.split_spread, "peer": rows.peer,
        "op": np.array(rows.op), "group": np.array(rows.group),
        **{f"{kind}_s": booked[kind] for kind in (*KINDS, "stretch")}, "kernels": booked["kernels"],
    }  # fmt: skip
    columns["own_exposed_s"] = booked["exposed"]
    steps = len(rows.windows)
    meta = {
        "origin_s": timeline.origin_s,
        "world_size": int(world) if isinstance(world, (int, float)) else 0,
        "members": {name: list(ranks) for name, ranks in rows.members.items()},
        "axes": rows.axes,
        "steps": steps,
        "unit": rows.windows.unit,
        "window_s": [float(rows.windows.device[0]), float(rows.windows.device[-1])],
        "host": str(timeline.properties.get("host_name") or ""),
        "gpu": next((d.name for d in timeline.devices if d.name), ""),
        "on_device": rows.on_device,
        "compute_s": computing(timeline, rows),
    }
    yield Table(TABLE, columns, timeline.source, timeline.scope, meta)
    yield from _kernel_table(timeline)
    yield from _own_facts(timeline, rows)


def _kernel_table(timeline: Timeline) -> Iterator[Table]:
    """Mean durations by name: what tells a slow clock from more work."""
    kernels = timeline.named(lambda n: work_of_kernel(n) is not Work.COMMUNICATION, timeline.rows(Kind.KERNEL))
    if not len(kernels):
        return
    code = timeline.name[kernels]
    total = np.bincount(code, weights=timeline.duration_s[kernels], minlength=len(timeline.names))
    count = np.bincount(code, minlength=len(timeline.names))
    top = np.argsort(-total, kind="stable")[:KERNELS_KEPT]
    top = top[count[top] > 0]
    columns = {
        "name": np.array([timeline.names[i][:200] for i in top.tolist()]),
        "total_s": total[top],
        "count": count[top].astype(np.float64),
    }
    yield Table(KERNEL_TABLE, columns, timeline.source, timeline.scope)


def _own_facts(timeline: Timeline, rows: CollectiveRows) -> Iterator[Fact]:
    windows = rows.windows
    steps = max(len(windows), 1)
    source = Source(timeline.source.file, windows.where)
    inside = (rows.start < windows.device[-1]) & (rows.end > windows.device[0])
    length_s = float(windows.device[-1] - windows.device[0]) / steps

    def fact(quantity: Quantity, value: float, samples: int) -> Fact:
        return Fact(quantity, value, source, timeline.scope, samples=samples)

    count = int(inside.sum())
    if not count or length_s <= 0:
        return
    duration, exposed, size = (rows.end - rows.start)[inside], rows.exposed[inside], rows.size_bytes[inside]
    yield fact(q.COLLECTIVES, count / steps, steps)
    yield fact(q.COMM_TIME, float(duration.sum()) / steps, count)
    yield fact(q.COMM_EXPOSED, float(exposed.sum()) / steps, count)
    yield fact(q.COMM_SHARE, float(exposed.sum()) / steps / length_s, count)
    if rows.on_device:
        view = view_of(timeline)
        own = view.is_kernel & ~np.isin(view.work, rows.row)
        yield fact(q.COMPUTE_BUSY, float(view.duration[own].sum()) / steps, int(own.sum()))
    if size.any():
        yield fact(q.COMM_BYTES, float(size.sum()) / steps, count)
        yield fact(q.MESSAGE_MEDIAN, _weighted_median(size, duration), count)
    op = np.array(rows.op)[inside]
    shuffled = op == "all-to-all"
    if shuffled.any():
        yield fact(q.ALL_TO_ALL_TIME, float(exposed[shuffled].sum()) / steps, int(shuffled.sum()))
    small = np.isin(op, list(REDUCTIONS)) & (size > 0) & (size < SMALL_BYTES)
    if small.any():
        yield fact(q.SMALL_TIME, float(exposed[small].sum()) / steps, int(small.sum()))
        yield fact(q.SMALL_COUNT, float(small.sum()) / steps, int(small.sum()))
        yield fact(q.SMALL_SIZE, float(np.median(size[small])), int(small.sum()))


def _weighted_median(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    order = np.argsort(values)
    reach = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reach, reach[-1] / 2)])
