"""Small files that something is wrong with, and one that nothing is."""

from __future__ import annotations

import gzip
import io
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.fuzz.commands import called

GOOD_LOG = (
    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of "
    "79.10 GiB of which 1.00 GiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 1.00 GiB is "
    "reserved by PyTorch but unallocated.\n"
)
TRAIN_LOG = "".join(f"step {i} loss: {2 - i / 1000:.3f} lr 0.1 time/step 120 ms\n" for i in range(400))


def cut_gzip() -> bytes:
    whole = gzip.compress(TRAIN_LOG.encode())
    return whole[: len(whole) // 2]


def flipped_gzip() -> bytes:
    whole = bytearray(gzip.compress(TRAIN_LOG.encode()))
    whole[-6] ^= 0xFF
    return bytes(whole)


def flipped_zip(method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr("a.log", TRAIN_LOG)
    whole = bytearray(stream.getvalue())
    for at in range(60, 90):
        whole[at] ^= 0x5A
    return bytes(whole)


def kernels_database(path: Path, name: str) -> None:
    """An nsys export with one kernel of this name, a hundred times."""
    database = sqlite3.connect(str(path))
    database.executescript(
        "CREATE TABLE StringIds(id INTEGER, value TEXT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, demangledName INTEGER, gridX, gridY, gridZ,"
        "blockX, blockY, blockZ, registersPerThread, staticSharedMemory, dynamicSharedMemory, deviceId, streamId,"
        "correlationId);"
    )
    database.execute("INSERT INTO StringIds VALUES(1, ?)", (name,))
    rows = [(i * 1000, i * 1000 + 800, 1, 1, 1, 1, 128, 1, 1, 32, 0, 0, 0, 7, i) for i in range(100)]
    database.executemany(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES({','.join('?' * 15)})", rows)
    database.commit()
    database.close()


def endless_database(path: Path) -> None:
    """A view that counts for ever, in the place of the kernels."""
    database = sqlite3.connect(str(path))
    database.executescript(
        "CREATE TABLE StringIds(id INTEGER, value TEXT);"
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT "
        "x AS start, x + 1 AS end, 1 AS demangledName, 1 AS gridX, 1 AS gridY, 1 AS gridZ, 1 AS blockX, 1 AS blockY, "
        "1 AS blockZ, 1 AS registersPerThread, 0 AS staticSharedMemory, 0 AS dynamicSharedMemory FROM n;"
    )
    database.commit()
    database.close()


def stallwise(*arguments: str, timeout_s: float = 60.0, **more: object) -> subprocess.CompletedProcess[str]:
    """The command line, as users start it."""
    return subprocess.run(
        [sys.executable, "-m", "stallwise", *arguments], capture_output=True, text=True, timeout=timeout_s, **more
    )  # type: ignore[call-overload,no-any-return]


def here(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[str]:
    """The same entry point in this process: for commands that start no job and end by themselves."""
    code, out, err = called(list(arguments), given)
    return subprocess.CompletedProcess(list(arguments), code, out, err)
