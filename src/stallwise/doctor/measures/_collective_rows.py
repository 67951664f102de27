"""The collectives of one rank as columns: which operation, in which group, how large, when, how much of it shows."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._collective_names import HOST_RANGE, element_bytes, op_of
from stallwise.doctor.measures._spans import Spans
from stallwise.doctor.measures._trace_view import TraceView, view_of
from stallwise.doctor.measures._vocabulary import Work, work_of_kernel
from stallwise.doctor.measures._windows import Windows, find_windows
from stallwise.evidence.timeline import Kind, Timeline

Floats = NDArray[np.float64]
NO_STEP = -1


@dataclass(slots=True, eq=False)
class CollectiveRows:
    """One entry per collective, in order of start."""

    row: NDArray[np.intp]  # in the timeline
    start: Floats
    end: Floats
    issued: Floats  # when the host asked for it
    op: list[str]
    group: list[str]
    size_bytes: Floats
    received_bytes: Floats  # what this rank got out of an exchange
    split_spread: Floats  # largest over mean part that it sent; NaN where not told
    peer: NDArray[np.int64]  # the other side of a hand-off, -1 where not told
    group_size: NDArray[np.int64]
    exposed: Floats  # seconds of it in which nothing else ran on the device
    step: NDArray[np.int64]
    index: NDArray[np.int64]  # place within its group and step
    members: dict[str, tuple[int, ...]]  # ranks by group, where the trace tells
    axes: dict[str, str]  # what a group is for, in the framework's words
    on_device: bool
    windows: Windows

    def __len__(self) -> int:
        return len(self.row)


def collective_rows(timeline: Timeline) -> CollectiveRows | None:
    """The rank's collectives, or None when it has none."""
    view = view_of(timeline)
    device = timeline.named(lambda n: work_of_kernel(n) is Work.COMMUNICATION, timeline.rows(Kind.KERNEL))
    host = timeline.named(lambda n: bool(HOST_RANGE.match(n)), timeline.rows(Kind.ANNOTATION))
    rows = device if len(device) else host
    if not len(rows):
        return None
    if len(device):
        launch = _launch_rows(view, rows)
        ranges = _enclosing(timeline, host, launch)
    else:
        launch, ranges = rows, rows
    issued = np.where(launch >= 0, timeline.start_s[np.maximum(launch, 0)], timeline.start_s[rows])
    described = [_described(timeline, int(r), int(around)) for r, around in zip(rows, ranges, strict=True)]
    windows = find_windows(view)
    step = step_numbers(windows, issued)
    group = _groups(timeline, rows, described)
    start, end = timeline.start_s[rows], timeline.end_s[rows]
    other = _other_work(timeline, rows) if len(device) else Spans.of([], [])
    return CollectiveRows(
        row=rows,
        start=start,
        end=end,
        issued=issued,
        op=[d.op for d in described],
        group=group,
        size_bytes=np.array([d.size_bytes for d in described]),
        received_bytes=np.array([d.received_bytes for d in described]),
        split_spread=np.array([d.split_spread for d in described]),
        peer=np.array([d.peer for d in described], np.int64),
        group_size=np.array([d.group_size for d in described], np.int64),
        exposed=np.maximum(end - start - other.within(start, end), 0.0),
        step=step,
        index=_places(group, step),
        members=_members(timeline, group, described),
        axes={g: d.axis for g, d in zip(group, described, strict=True) if d.axis},
        on_device=bool(len(device)),
        windows=windows,
    )


@dataclass(frozen=True, slots=True)
class _Described:
    op: str
    group: str
    size_bytes: float
    group_size: int
    ranks: tuple[int, ...]
    received_bytes: float
    split_spread: float
    peer: int
    axis: str


def _launch_rows(view: TraceView, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    place = np.searchsorted(view.work, rows)
    place = np.minimum(place, max(len(view.work) - 1, 0))
    known = view.work[place] == rows
    return np.where(known, view.launch_row[place], -1)


def _enclosing(timeline: Timeline, ranges: NDArray[np.intp], launch: NDArray[np.intp]) -> NDArray[np.intp]:
    """The host range (nccl:all_reduce) around each launch, -1 where none is."""
    found = np.full(len(launch), -1, np.intp)
    for lane in np.unique(timeline.lane[ranges]):
        mine = ranges[timeline.lane[ranges] == lane]
        asked = np.flatnonzero((launch >= 0) & (timeline.lane[np.maximum(launch, 0)] == lane))
        at = timeline.start_s[launch[asked]]
        place = np.searchsorted(timeline.start_s[mine], at, side="right") - 1
        inside = (place >= 0) & (timeline.end_s[mine[np.maximum(place, 0)]] >= at)
        found[asked[inside]] = mine[place[inside]]
    return found


def _described(timeline: Timeline, row: int, around: int) -> _Described:
    detail = timeline.details_of(row)
    shown = timeline.details_of(around) if around >= 0 else {}
    named = str(detail.get("Collective name") or shown.get("Collective name") or "")
    op = op_of(named) or (op_of(timeline.text(around)) if around >= 0 else "") or op_of(timeline.text(row)) or "other"
    ranks = _ranks(detail)
    size = _size_bytes(detail, op) or _shape_bytes(shown) or _shape_bytes(detail)
    group = str(detail.get("Process Group Name") or "")
    received = _number(detail.get("Out msg nelems")) * element_bytes(str(detail.get("dtype", "")))
    return _Described(
        op, group, size, int(_number(detail.get("Group size"))) or len(ranks), ranks, received or size,
        _uneven(detail.get("In split size")), _peer(detail, op),
        str(detail.get("Process Group Description") or ""),
    )  # fmt: skip


def _uneven(text: Any) -> float:
    """How unevenly an exchange sends: the largest part over the mean."""
    parts = _listed(text)
    total = sum(parts)
    return max(parts) * len(parts) / total if parts and total > 0 else float("nan")


def _peer(detail: dict[str, Any], op: str) -> int:
    for key in ("Dst Rank", "Src Rank") if op == "send" else ("Src Rank", "Dst Rank"):
        value = detail.get(key)
        if isinstance(value, int) and value >= 0:
            return value
    return -1


def _size_bytes(detail: dict[str, Any], op: str) -> float:
    """As nccl-tests counts: the gathered result, the scattered source, else the message."""
    given, taken = _number(detail.get("In msg nelems")), _number(detail.get("Out msg nelems"))
    elements = taken if op == "all-gather" else given if op in ("reduce-scatter", "all-to-all") else max(given, taken)
    return (elements or max(given, taken)) * element_bytes(str(detail.get("dtype", "")))


def _shape_bytes(detail: dict[str, Any]) -> float:
    """Of the first tensor of an operator's recorded shapes."""
    dims, types = detail.get("Input Dims"), detail.get("Input type")
    if not isinstance(dims, list) or not isinstance(types, list):
        return 0.0
    for shape, dtype in zip(dims, types, strict=False):
        if isinstance(shape, list) and shape and all(isinstance(n, int) for n in shape):
            return float(math.prod(shape)) * element_bytes(str(dtype))
    return 0.0


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


def _ranks(detail: dict[str, Any]) -> tuple[int, ...]:
    return tuple(_listed(detail.get("Process Group Ranks")))


def _listed(text: Any) -> list[int]:
    if isinstance(text, str):
        try:
            text = json.loads(text)  # long lists are shortened with "..." and do not parse
        except ValueError:
            return []
    return [int(r) for r in text] if isinstance(text, list) and all(isinstance(r, int) for r in text) else []


def _groups(timeline: Timeline, rows: NDArray[np.intp], described: list[_Described]) -> list[str]:
    """The group's own name; where the trace has none, the stream, numbered by first use (ids differ between ranks)."""
    if any(d.group for d in described):
        return [d.group or "?" for d in described]
    if not timeline.lanes[timeline.lane[rows[0]]].on_device:
        return [_unnamed_group(timeline)] * len(rows)
    order: dict[int, int] = {}
    return [f"stream {order.setdefault(code, len(order))}" for code in timeline.lane[rows].tolist()]


def _unnamed_group(timeline: Timeline) -> str:
    """A pool of threads serves one group; where the rank is in several, calls match those of ranks in the same ones alone."""
    world = timeline.distributed.get("world_size")
    parts = {ranks for ranks in configured_groups(timeline).values() if 1 < len(ranks) != world}
    return f"one of {len(parts)}: {sorted(parts)}"[:64] if parts else "0"


def configured_groups(timeline: Timeline) -> dict[str, tuple[int, ...]]:
    """Ranks of the process groups that the job has set up, as far as this rank is in them."""
    config = timeline.distributed.get("pg_config")
    found: dict[str, tuple[int, ...]] = {}
    for entry in config if isinstance(config, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("ranks"), list):
            ranks = tuple(r for r in entry["ranks"] if isinstance(r, int))
            if ranks:
                found.setdefault(str(entry.get("pg_name")), ranks)
    return found


def _members(timeline: Timeline, group: list[str], described: list[_Described]) -> dict[str, tuple[int, ...]]:
    found = {name: d.ranks for name, d in zip(group, described, strict=True) if d.ranks}
    return {**configured_groups(timeline), **found}


def step_numbers(windows: Windows, issued: Floats) -> NDArray[np.int64]:
    """The number of the step in which each was asked for, as the marks count; NO_STEP without marks."""
    if windows.unit == "window":
        return np.full(len(issued), NO_STEP, np.int64)
    place = np.searchsorted(windows.host, issued, side="right") - 1
    numbers = np.array([_trailing_number(label, at) for at, label in enumerate(windows.labels)] or range(len(windows)))
    inside = (place >= 0) & (place < len(windows))
    step: NDArray[np.int64] = np.where(inside, numbers[np.clip(place, 0, len(windows) - 1)], NO_STEP).astype(np.int64)
    # Work asked for before the first mark or after the last belongs to no whole step.
    return step


def _trailing_number(label: str, at: int) -> int:
    digits = label[len(label.rstrip("0123456789")) :]
    return int(digits) if digits else at


def _places(group: list[str], step: NDArray[np.int64]) -> NDArray[np.int64]:
    seen: dict[tuple[str, int], int] = {}
    places = []
    for key in zip(group, step.tolist(), strict=True):
        places.append(seen.get(key, 0))
        seen[key] = places[-1] + 1
    return np.array(places, np.int64)


def _other_work(timeline: Timeline, rows: NDArray[np.intp]) -> Spans:
    device = timeline.rows(Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)
    other = np.setdiff1d(device, rows, assume_unique=True)
    return Spans.of(timeline.start_s[other], timeline.end_s[other])
