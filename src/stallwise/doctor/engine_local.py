"""All cores of this machine, when that pays; memory is bounded by the number of workers, not of files."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stallwise.doctor.reading import Reading, ReadingPlan, one_by_one
from stallwise.evidence.artifact import Artifact

if TYPE_CHECKING:  # slow to load, and a single file needs no pool
    from concurrent.futures import Future, ProcessPoolExecutor

WORTH_A_POOL_BYTES = 70 << 20  # unpacked: about 300,000 events, a second of work; a pool starts in a third of that
USUAL_PACKING = 15.0  # of gzip on traces
SMALL_FILE_BYTES = 140_000  # of a trace: what asking every reader about a tiny file costs
BATCH_BYTES = 4_000_000  # of work that one worker is handed at once: some thirty tiny files, or one trace
IN_FLIGHT_PER_WORKER = 4  # enough to keep workers busy, few enough to keep results from piling up


class LocalEngine:
    """Processes of this machine; a single process where a pool would cost more than it saves."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or usable_cores()

    def readings(self, artifacts: list[Artifact], plan: ReadingPlan) -> Iterator[Reading]:
        """In the order of the artifacts."""
        away = [a for a in artifacts if not a.in_memory]
        workers = min(self.workers, len(away))
        if workers < 2 or plan.keep_timelines or sum(map(work_bytes, away)) < WORTH_A_POOL_BYTES:
            yield from one_by_one(artifacts, plan)
            return
        yield from self._pooled(artifacts, plan, workers)

    def _pooled(self, artifacts: list[Artifact], plan: ReadingPlan, workers: int) -> Iterator[Reading]:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        # fork shares the loaded code; where it does not exist every worker imports anew.
        method = "fork" if "fork" in multiprocessing.get_all_start_methods() else None
        with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context(method)) as pool:
            pending: deque[tuple[list[Artifact], Future[list[Reading]] | None]] = deque()
            left = _batches(artifacts)
            while True:
                while len(pending) < workers * IN_FLIGHT_PER_WORKER and (batch := next(left, None)) is not None:
                    pending.append((batch, _submitted(pool, batch, plan)))
                if not pending:
                    return
                batch, future = pending.popleft()
                yield from _result(batch, future, plan)


def _batches(artifacts: list[Artifact]) -> Iterator[list[Artifact]]:
    """Neighbours that are read in one go: a worker that is handed one tiny file at a time waits for the next most of the time."""
    batch: list[Artifact] = []
    size = 0.0
    for artifact in artifacts:
        size += work_bytes(artifact)
        if batch and (size > BATCH_BYTES or batch[0].in_memory or artifact.in_memory):
            yield batch
            batch, size = [], work_bytes(artifact)
        batch.append(artifact)
    if batch:
        yield batch


def _submitted(pool: ProcessPoolExecutor, batch: list[Artifact], plan: ReadingPlan) -> Future[list[Reading]] | None:
    from concurrent.futures import BrokenExecutor

    if batch[0].in_memory:
        return None
    try:
        return pool.submit(_read, [artifact.bare() for artifact in batch], plan)
    except BrokenExecutor:
        return None


def _read(batch: list[Artifact], plan: ReadingPlan) -> list[Reading]:
    return list(one_by_one(batch, plan))


def _result(batch: list[Artifact], future: Future[list[Reading]] | None, plan: ReadingPlan) -> list[Reading]:
    """A worker that dies (killed for memory) takes nobody else's answer with it."""
    if future is not None:
        from concurrent.futures import BrokenExecutor

        try:
            return future.result()
        except BrokenExecutor:
            pass
    return _read(batch, plan)


def usable_cores() -> int:
    """Cores this process may run on, which containers make fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def work_bytes(artifact: Artifact) -> float:
    """About how much there is to parse."""
    packed = artifact.name.endswith((".gz", ".zip"))
    return SMALL_FILE_BYTES + artifact.size_bytes * (USUAL_PACKING if packed else 1.0)
