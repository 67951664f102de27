"""`nsys export --type sqlite`: the recording in time, and time, launch shape and registers by kernel."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copyfileobj

from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Scope, Source
from stallwise.evidence.limits import OutOfTime, out_of_time
from stallwise.readers.native._nsys_timeline import timeline_of

FORMAT = "nsys sqlite export"
CAPTURE = "nsys profile -o run python train.py && nsys export --type sqlite run.nsys-rep"
EXCLUSIVE = True
MAGIC = b"SQLite format 3\x00"
NANOSECOND = 1e-9
INSTRUCTIONS_BETWEEN_LOOKS = 100_000  # of the database's machine: some milliseconds
MOST_KERNELS = 200  # by total time; the rest is noise in any report
TABLES = {"CUPTI_ACTIVITY_KIND_KERNEL", "StringIds", "TARGET_INFO_GPU"}
_QUERY = """
SELECT s.value, COUNT(*), SUM(r.end - r.start), AVG(r.gridX * r.gridY * r.gridZ), AVG(r.blockX * r.blockY * r.blockZ),
       AVG(r.registersPerThread), AVG(r.staticSharedMemory + r.dynamicSharedMemory)
FROM CUPTI_ACTIVITY_KIND_KERNEL r JOIN StringIds s ON s.id = r.demangledName
GROUP BY r.demangledName ORDER BY 3 DESC
"""


def recognises(name: str, head: bytes) -> bool:
    """A database with tables of CUPTI activity."""
    return head.startswith(MAGIC) and b"CUPTI_ACTIVITY_KIND" in head


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
                rows = database.execute(_QUERY).fetchall()
                timeline = timeline_of(database, Source(artifact.name))
        except (sqlite3.Error, UnicodeDecodeError) as error:  # a damaged schema is quoted as it is in the message
            if out_of_time():
                raise OutOfTime from error
            raise UnreadableInput(f"{artifact.name}: {error}", hint="nsys export --type sqlite run.nsys-rep") from error
    if timeline is not None:
        yield timeline
    if not rows:
        yield Note("no kernel ran while nsys recorded", source)
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
