"""The tables of an nsys export as one timeline: kernels, graphs, copies, driver calls, ranges and the recorder's own work."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from stallwise.evidence.fact import Source
from stallwise.evidence.profile import Spent
from stallwise.evidence.timeline import NO_ID, Device, Kind, Lane, Timeline
from stallwise.readers.native._trace_columns import Codes

NANOSECOND = 1e-9
MOST_ROWS = 20_000_000  # of one table; more does not fit beside the rest
RUNTIME, GRAPHS = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_VERSION = re.compile(r"_v\d+(_pt[a-z]+)?$")
_COPY = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
_MEMORY = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed"}
_THREAD, _PROCESS = 0xFFFFFF, 24


class _Row(NamedTuple):
    """One event, times in nanoseconds."""

    start: int
    end: int
    kind: Kind
    name: str
    lane: Lane
    call: int | None = None
    size: float = float("nan")


def timeline_of(database: sqlite3.Connection, source: Source) -> Timeline | None:
    """All events in order; None where the export holds no device work with a place in time."""
    columns = _columns(database)
    words = dict(database.execute("SELECT id, value FROM StringIds")) if "StringIds" in columns else {}
    rows = list(_device_rows(database, columns, words))
    if not rows:
        return None
    rows += _host_rows(database, columns, words)
    starts, ends, kinds, named, on, calls, sizes = zip(*rows, strict=True)
    names, lanes = Codes(), Codes()
    start = np.array(starts, np.int64)
    length = np.maximum(np.array(ends, np.int64) - start, 0)
    order = np.lexsort((-length, start))
    origin = int(start.min())
    return Timeline(
        start_s=((start[order] - origin) * NANOSECOND).astype(np.float64),
        duration_s=(length[order] * NANOSECOND).astype(np.float64),
        kind=np.array(kinds, np.uint8)[order],
        name=names.of(named)[order],
        lane=lanes.of(on)[order],
        correlation=np.array([call if call and call > 0 else NO_ID for call in calls], np.int64)[order],
        external=np.full(len(start), NO_ID, np.int64),
        size_bytes=np.array(sizes)[order],
        detail=np.full(len(start), NO_ID, np.int32),
        names=list(names),
        lanes=list(lanes),
        details=[],
        source=source,
        origin_s=origin * NANOSECOND,
        devices=list(_devices(database, columns)),
    )


def tables_of(database: sqlite3.Connection) -> set[str]:
    """The tables that this export has: which depends on what was traced, and on what happened."""
    return {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def host_calls(database: sqlite3.Connection) -> Iterator[Spent]:
    """The calls of the host by name: into CUDA where those were traced, else into the system."""
    columns = _columns(database)
    table = RUNTIME if RUNTIME in columns else "OSRT_API"
    words = dict(database.execute("SELECT id, value FROM StringIds")) if "StringIds" in columns else {}
    for start, end, name in _select(database, columns, table, "nameId"):
        seconds = max(end - start, 0) * NANOSECOND
        yield Spent(_VERSION.sub("", words.get(name, "a call without a name")), seconds, 0.0, seconds, 1.0)


def _columns(database: sqlite3.Connection) -> dict[str, set[str]]:
    """Columns by table; views are left alone, since a view may compute for ever."""
    tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: {row[1] for row in database.execute(f'PRAGMA table_info("{name}")')} for name in tables}


def _select(
    database: sqlite3.Connection, columns: dict[str, set[str]], table: str, *wanted: str
) -> Iterator[tuple[Any, ...]]:
    """Start, end and these columns of all rows, NULL for what this version of the export lacks; all but texts as whole numbers."""
    have = columns.get(table, set())
    if not {"start", "end"} <= have:
        return
    cast = (f"CAST({name} AS {'TEXT' if name == 'text' else 'INTEGER'})" for name in ("start", "end", *wanted))
    listed = ", ".join(
        cell if name in have else "NULL" for name, cell in zip(("start", "end", *wanted), cast, strict=True)
    )
    yield from database.execute(
        f'SELECT {listed} FROM "{table}" WHERE start IS NOT NULL AND end IS NOT NULL LIMIT {MOST_ROWS}'
    )


def _device_rows(database: sqlite3.Connection, columns: dict[str, set[str]], words: dict[int, str]) -> Iterator[_Row]:
    def stream(device: int | None, number: int | None) -> Lane:
        return Lane(True, str(device or 0), str(number or 0))

    place = ("deviceId", "streamId", "correlationId")
    kernels = _select(database, columns, "CUPTI_ACTIVITY_KIND_KERNEL", *place, "demangledName", "shortName")
    for start, end, device, number, call, long, short in kernels:
        if "streamId" not in columns["CUPTI_ACTIVITY_KIND_KERNEL"]:
            return  # an excerpt for sums, not a recording in time
        name = words.get(long) or words.get(short) or "kernel"
        yield _Row(start, end, Kind.KERNEL, name, stream(device, number), call)
    # A graph recorded as a whole has no rows of its kernels.
    graphs = _select(database, columns, GRAPHS, *place, "graphExecId", "graphId")
    for start, end, device, number, call, executed, graph in graphs:
        name = f"CUDA graph {graph or executed or ''}".strip()
        yield _Row(start, end, Kind.KERNEL, name, stream(device, number), call)
    copies = _select(database, columns, "CUPTI_ACTIVITY_KIND_MEMCPY", *place, "bytes", "copyKind", "srcKind", "dstKind")
    for start, end, device, number, call, size, kind, source, target in copies:
        ends = f"({_MEMORY.get(source or 0, '?')} -> {_MEMORY.get(target or 0, '?')})"
        name = f"Memcpy {_COPY.get(kind, 'other')} {ends}"
        yield _Row(start, end, Kind.MEMCPY, name, stream(device, number), call, float(size or 0))
    for start, end, device, number, call, size in _select(
        database, columns, "CUPTI_ACTIVITY_KIND_MEMSET", *place, "bytes"
    ):
        yield _Row(start, end, Kind.MEMSET, "Memset", stream(device, number), call, float(size or 0))


def _host_rows(database: sqlite3.Connection, columns: dict[str, set[str]], words: dict[int, str]) -> Iterator[_Row]:
    calls = _select(database, columns, RUNTIME, "globalTid", "correlationId", "nameId")
    for start, end, thread, call, name in calls:
        yield _Row(start, end, Kind.RUNTIME, _VERSION.sub("", words.get(name, "driver call")), _thread(thread), call)
    for start, end, thread, text, name in _select(database, columns, "NVTX_EVENTS", "globalTid", "text", "textId"):
        if label := text if text is not None else words.get(name, ""):
            yield _Row(start, end, Kind.ANNOTATION, label, _thread(thread))
    for start, end, thread, name in _select(database, columns, "PROFILER_OVERHEAD", "globalTid", "nameId"):
        yield _Row(start, end, Kind.OVERHEAD, words.get(name, "profiler overhead"), _thread(thread))


def _devices(database: sqlite3.Connection, columns: dict[str, set[str]]) -> Iterator[Device]:
    have = columns.get("TARGET_INFO_GPU", set())
    if not {"id", "name"} <= have:
        return
    casts = (f"CAST({name} AS INTEGER)" if name in have else "0" for name in ("totalMemory", "smCount"))
    for index, name, size, count in database.execute(
        f"SELECT CAST(id AS INTEGER), name, {', '.join(casts)} FROM TARGET_INFO_GPU LIMIT 64"
    ):
        yield Device(index or 0, str(name), float(size or 0), count or 0)


def _thread(identity: int | None) -> Lane:
    number = identity or 0
    return Lane(False, str((number >> _PROCESS) & _THREAD), str(number & _THREAD))
