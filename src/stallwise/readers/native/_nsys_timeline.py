"""The tables of an nsys export as one timeline: kernels, graphs, copies, driver calls, ranges and the recorder's own work."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from stallwise.evidence.fact import Source
from stallwise.evidence.timeline import NO_ID, Device, Kind, Lane, Timeline

NANOSECOND = 1e-9
MOST_ROWS = 20_000_000  # of one table; more does not fit beside the rest
_VERSION = re.compile(r"_v\d+(_pt[a-z]+)?$")
_COPY = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
_MEMORY = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed"}
_THREAD, _PROCESS = 0xFFFFFF, 24


@dataclass
class _Rows:
    """Columns in the making."""

    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    lane: list[int] = field(default_factory=list)
    correlation: list[int] = field(default_factory=list)
    size: list[float] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    lanes: dict[Lane, int] = field(default_factory=dict)

    def add(
        self,
        start: int,
        end: int,
        kind: Kind,
        name: str,
        lane: Lane,
        correlation: int | None,
        size: float | None = None,
    ) -> None:
        self.start.append(start)
        self.end.append(max(end, start))
        self.kind.append(int(kind))
        self.name.append(self.names.setdefault(name, len(self.names)))
        self.lane.append(self.lanes.setdefault(lane, len(self.lanes)))
        self.correlation.append(NO_ID if correlation is None else correlation)
        self.size.append(float("nan") if size is None else float(size))


def timeline_of(database: sqlite3.Connection, source: Source) -> Timeline | None:
    """All events in order; None where the export holds no device work with a place in time."""
    columns = _columns(database)
    words = dict(database.execute("SELECT id, value FROM StringIds")) if "StringIds" in columns else {}
    rows = _Rows()
    _device_rows(database, columns, words, rows)
    if not rows.start:
        return None
    _host_rows(database, columns, words, rows)
    start = np.array(rows.start, np.int64)
    length = np.array(rows.end, np.int64) - start
    order = np.lexsort((-length, start))
    origin = int(start.min())
    return Timeline(
        start_s=((start[order] - origin) * NANOSECOND).astype(np.float64),
        duration_s=(length[order] * NANOSECOND).astype(np.float64),
        kind=np.array(rows.kind, np.uint8)[order],
        name=np.array(rows.name, np.int32)[order],
        lane=np.array(rows.lane, np.int32)[order],
        correlation=np.array(rows.correlation, np.int64)[order],
        external=np.full(len(start), NO_ID, np.int64),
        size_bytes=np.array(rows.size)[order],
        detail=np.full(len(start), NO_ID, np.int32),
        names=list(rows.names),
        lanes=list(rows.lanes),
        details=[],
        source=source,
        origin_s=origin * NANOSECOND,
        devices=list(_devices(database, columns)),
    )


def _columns(database: sqlite3.Connection) -> dict[str, set[str]]:
    """Columns by table; views are left alone, since a view may compute for ever."""
    tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: {row[1] for row in database.execute(f'PRAGMA table_info("{name}")')} for name in tables}


def _select(
    database: sqlite3.Connection, columns: dict[str, set[str]], table: str, wanted: tuple[str, ...]
) -> Iterator[tuple[object, ...]]:
    """Rows with these columns, NULL for those that this version of the export lacks."""
    have = columns.get(table, set())
    if not {"start", "end"} <= have:
        return
    listed = ", ".join(name if name in have else "NULL" for name in wanted)
    yield from database.execute(f'SELECT {listed} FROM "{table}" WHERE end IS NOT NULL LIMIT {MOST_ROWS}')


def _device_rows(
    database: sqlite3.Connection, columns: dict[str, set[str]], words: dict[int, str], rows: _Rows
) -> None:
    def stream(device: object, number: object) -> Lane:
        return Lane(True, str(device or 0), str(number or 0))

    wanted: tuple[str, ...]
    wanted = ("start", "end", "deviceId", "streamId", "correlationId", "demangledName", "shortName")
    for start, end, device, number, call, long, short in _select(
        database, columns, "CUPTI_ACTIVITY_KIND_KERNEL", wanted
    ):
        if "streamId" not in columns["CUPTI_ACTIVITY_KIND_KERNEL"]:
            return  # an excerpt for sums, not a recording in time
        name = words.get(_id(long)) or words.get(_id(short)) or "kernel"
        rows.add(_int(start), _int(end), Kind.KERNEL, name, stream(device, number), _call(call))
    # A graph recorded as a whole has no rows of its kernels.
    wanted = ("start", "end", "deviceId", "streamId", "correlationId", "graphExecId", "graphId")
    for start, end, device, number, call, executed, graph in _select(
        database, columns, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", wanted
    ):
        name = f"CUDA graph {graph or executed or ''}".strip()
        rows.add(_int(start), _int(end), Kind.KERNEL, name, stream(device, number), _call(call))
    wanted = ("start", "end", "deviceId", "streamId", "correlationId", "bytes", "copyKind", "srcKind", "dstKind")
    for start, end, device, number, call, size, kind, source, target in _select(
        database, columns, "CUPTI_ACTIVITY_KIND_MEMCPY", wanted
    ):
        ends = f"({_MEMORY.get(_int(source), '?')} -> {_MEMORY.get(_int(target), '?')})"
        name = f"Memcpy {_COPY.get(_int(kind), 'other')} {ends}"
        rows.add(_int(start), _int(end), Kind.MEMCPY, name, stream(device, number), _call(call), float(_int(size)))
    wanted = ("start", "end", "deviceId", "streamId", "correlationId", "bytes")
    for start, end, device, number, call, size in _select(database, columns, "CUPTI_ACTIVITY_KIND_MEMSET", wanted):
        rows.add(_int(start), _int(end), Kind.MEMSET, "Memset", stream(device, number), _call(call), float(_int(size)))


def _host_rows(database: sqlite3.Connection, columns: dict[str, set[str]], words: dict[int, str], rows: _Rows) -> None:
    wanted = ("start", "end", "globalTid", "correlationId", "nameId")
    for start, end, thread, call, name in _select(database, columns, "CUPTI_ACTIVITY_KIND_RUNTIME", wanted):
        plain = _VERSION.sub("", words.get(_id(name), "driver call"))
        rows.add(_int(start), _int(end), Kind.RUNTIME, plain, _thread(thread), _call(call))
    for start, end, thread, text, name in _select(
        database, columns, "NVTX_EVENTS", ("start", "end", "globalTid", "text", "textId")
    ):
        label = str(text) if text is not None else words.get(_id(name), "")
        if label:
            rows.add(_int(start), _int(end), Kind.ANNOTATION, label, _thread(thread), None)
    for start, end, thread, name in _select(
        database, columns, "PROFILER_OVERHEAD", ("start", "end", "globalTid", "nameId")
    ):
        label = words.get(_id(name), "profiler overhead")
        rows.add(_int(start), _int(end), Kind.OVERHEAD, label, _thread(thread), None)


def _devices(database: sqlite3.Connection, columns: dict[str, set[str]]) -> Iterator[Device]:
    have = columns.get("TARGET_INFO_GPU", set())
    if not {"id", "name"} <= have:
        return
    memory = "totalMemory" if "totalMemory" in have else "NULL"
    units = "smCount" if "smCount" in have else "NULL"
    for index, name, size, count in database.execute(
        f"SELECT id, name, {memory}, {units} FROM TARGET_INFO_GPU LIMIT 64"
    ):
        yield Device(_int(index), str(name), float(_int(size)), _int(count))


def _thread(identity: object) -> Lane:
    number = _int(identity)
    return Lane(False, str((number >> _PROCESS) & _THREAD), str(number & _THREAD))


def _int(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) else 0


def _id(value: object) -> int:
    return value if isinstance(value, int) else -1


def _call(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
