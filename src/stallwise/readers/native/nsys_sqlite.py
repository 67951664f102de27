"""`nsys export --type sqlite`: the recording in time, and time, launch shape and registers by kernel."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copyfileobj
from typing import Any

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Scope, Source
from stallwise.evidence.limits import OutOfTime, out_of_time
from stallwise.evidence.profile import Spent, profile_table
from stallwise.readers._profile_kinds import seconds_by_kind
from stallwise.readers.native._nsys_timeline import GRAPHS, RUNTIME, host_calls, tables_of, timeline_of

FORMAT = "nsys sqlite export"
CAPTURE = "nsys profile -o run python train.py && nsys export --type sqlite run.nsys-rep"
EXCLUSIVE = True
MAGIC = b"SQLite format 3\x00"
NANOSECOND = 1e-9
INSTRUCTIONS_BETWEEN_LOOKS = 100_000  # of the database's machine: some milliseconds
MOST_KERNELS = 200  # by total time; the rest is noise in any report
EVERY_EXPORT = (b"TARGET_INFO_SYSTEM_ENV", b"META_DATA_EXPORT", b"NVTX_EVENTS", b"OSRT_API")
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
TABLES = {"CUPTI_ACTIVITY_KIND_KERNEL", "StringIds", "TARGET_INFO_GPU"}
DEVICE_TABLES = {"CUPTI_ACTIVITY_KIND_MEMCPY": "copies", "CUPTI_ACTIVITY_KIND_MEMSET": "memory sets"}
NAMES = ("demangledName", "shortName", "mangledName")  # of a kernel, the fullest first
SHAPE = {  # what its launch was like, by columns that not every release writes
    "grid": ("gridX", "gridY", "gridZ"), "block": ("blockX", "blockY", "blockZ"), "registers": ("registersPerThread",),
    "shared": ("staticSharedMemory", "dynamicSharedMemory"),
}  # fmt: skip


def recognises(name: str, head: bytes) -> bool:
    """A database with tables of CUPTI activity, or at least those that every export has."""
    return head.startswith(MAGIC) and (
        b"CUPTI_ACTIVITY_KIND" in head or (b"StringIds" in head and any(name in head for name in EVERY_EXPORT))
    )


def read(artifact: Artifact) -> Iterator[Item]:
    """One timeline; total and mean time, grid, block and registers of every kernel."""
    source = Source(artifact.name, "CUPTI_ACTIVITY_KIND_KERNEL")
    with tempfile.TemporaryDirectory() as folder:
        path = artifact.path
        if path is None or artifact.packed:
            path = Path(folder) / "run.sqlite"
            with artifact.open() as stream, path.open("wb") as unpacked:
                copyfileobj(stream, unpacked)
        try:
            with closing(_opened(path)) as database:
                captured = tables_of(database)
                rows = _kernels(database, captured) if KERNELS in captured else []
                timeline = timeline_of(database, Source(artifact.name)) if rows or GRAPHS in captured else None
                calls = list(host_calls(database)) if timeline is None and not rows else []
        except (sqlite3.Error, UnicodeDecodeError) as error:  # a damaged schema is quoted as it is in the message
            if out_of_time():
                raise OutOfTime from error
            raise UnreadableInput(
                f"{artifact.name} is cut or damaged: its database cannot be read ({error})",
                hint="copy it again, or: nsys export --type sqlite run.nsys-rep",
            ) from error
    if not rows and timeline is None:
        yield from _without_kernels(artifact.name, captured, calls)
    if timeline is not None:
        yield timeline
    whole = sum(row[2] for row in rows)
    for name, count, total, grid, block, registers, shared in rows[:MOST_KERNELS]:
        scope = Scope(kernel=str(name))
        values = {
            k.TOTAL_TIME: total * NANOSECOND, k.TIME: total * NANOSECOND / count, k.TIME_SHARE: total / whole if whole else 0.0,
            k.GRID_BLOCKS: grid, k.BLOCK_THREADS: block, k.REGISTERS: registers, k.SHARED_BYTES: shared,
        }  # fmt: skip
        for quantity, value in values.items():
            if value is not None:
                yield Fact(quantity, float(value), source, scope, samples=int(count))


def _kernels(database: sqlite3.Connection, captured: set[str]) -> list[tuple[Any, ...]]:
    """Name, launches, nanoseconds and the means of its shape, longest first; NULL for what this export does not hold."""
    have = {row[1] for row in database.execute(f"PRAGMA table_info({KERNELS})")}
    if not {"start", "end"} <= have:
        return []
    name = next((f"r.{column}" for column in NAMES if column in have), "NULL")
    worded = "StringIds" in captured and name != "NULL"
    name_expression = "s.value" if worded else f"'kernel ' || {name}" if name != "NULL" else "'kernel'"
    means = (
        f"AVG({(' + ' if part == 'shared' else ' * ').join(f'r.{c}' for c in columns)})"
        if {*columns} <= have
        else "NULL"
        for part, columns in SHAPE.items()
    )
    joined = f"JOIN StringIds s ON s.id = {name}" if worded else ""
    return database.execute(
        f"SELECT {name_expression}, COUNT(*), SUM(r.end - r.start), {', '.join(means)} FROM {KERNELS} r {joined} "
        f"GROUP BY {name} ORDER BY 3 DESC"
    ).fetchall()


def _without_kernels(file: str, captured: set[str], calls: list[Spent]) -> Iterator[Item]:
    """What such an export holds instead: the host's calls, where they were captured."""
    device = [word for table, word in DEVICE_TABLES.items() if table in captured]
    beside = f"; of the device only {' and '.join(device)}" if device else ""
    lack = f"no kernel was captured{beside}"
    of = "CUDA calls" if RUNTIME in captured else "calls of the system"
    source = Source(file, RUNTIME if RUNTIME in captured else "OSRT_API")
    yield profile_table(
        calls, source, of=of, host_s=sum(call.own_s for call in calls), doing=seconds_by_kind(calls), limit=lack, lacks="kernels"
    )  # fmt: skip
    yield Note(
        f"{lack} (no table {KERNELS})" if KERNELS not in captured else f"{lack}: its table is empty", Source(file)
    )


def _opened(path: Path) -> sqlite3.Connection:
    """Read-only, by a name that cannot mean another file; a view in a table's place is a program and is refused."""
    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    database.set_progress_handler(lambda: int(out_of_time()), INSTRUCTIONS_BETWEEN_LOOKS)
    database.text_factory = lambda raw: raw.decode("utf-8", "replace")
    database.execute("PRAGMA trusted_schema = OFF")
    views = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type <> 'table'")}
    if views & TABLES:
        database.close()
        raise sqlite3.DatabaseError(f"{min(views & TABLES)} is no table")
    return database
