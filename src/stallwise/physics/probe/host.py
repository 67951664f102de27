"""The host's ceilings: memory copy, storage write for checkpoints, launch of Python itself, a loader's rate."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from stallwise.errors import UnreadableInput
from stallwise.physics.probe.reading import Reading
from stallwise.physics.probe.timing import bench
from stallwise.units import Unit

COPY_BYTES = 256 << 20
WRITE_BYTES = 256 << 20
MATRIX = 1024


def probe_host(folder: Path | None = None) -> Iterator[Reading]:
    """Host memory, arithmetic and the disk that checkpoints would go to."""
    source, target = np.ones(COPY_BYTES // 8), np.empty(COPY_BYTES // 8)
    copy = bench(lambda: np.copyto(target, source))
    yield Reading.rate("host memory copy", Unit.BYTE_PER_S, 2 * COPY_BYTES, copy, "bytes read and written, one thread")
    a = np.random.default_rng(0).standard_normal((MATRIX, MATRIX), dtype=np.float32)
    yield Reading.rate("host gemm fp32", Unit.FLOP_PER_S, 2 * MATRIX**3, bench(np.matmul, (a, a)), f"{MATRIX}^3, numpy")
    yield write_rate(folder)


def write_rate(folder: Path | None = None) -> Reading:
    """What a checkpoint would reach: one file, written and forced to disk."""
    data = os.urandom(1 << 20) * (WRITE_BYTES >> 20)
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            start = time.perf_counter()
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            seconds = time.perf_counter() - start
    except OSError as error:
        raise UnreadableInput(
            f"cannot write to {folder}: {error.strerror}", hint="name a folder that exists: --storage DIR"
        ) from error
    return Reading("storage write", WRITE_BYTES / seconds, Unit.BYTE_PER_S, "one file of 256 MiB with fsync, once")


def loader_rate(loader: Iterable[object], seconds: float = 10.0) -> Reading:
    """Batches a second that a loader gives when nobody computes: it must beat the step rate."""
    batches, begin = 0, 0.0
    for number, _ in enumerate(loader):
        now = time.perf_counter()
        if number == 0:
            begin = now  # the first batch starts the workers
            continue
        batches = number
        if now - begin > seconds:
            break
    spent = time.perf_counter() - begin if begin else 0.0
    return Reading(
        "loader",
        batches / spent if spent and batches else float("nan"),
        Unit.PER_S,
        f"{batches} batches, nobody computing",
    )
