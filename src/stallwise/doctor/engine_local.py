"""All cores of this machine, when that pays; memory is bounded by the number of workers, not of files."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stallwise.doctor.reading import Reading, ReadingPlan, one_by_one, reading_of
from stallwise.evidence.artifact import Artifact

if TYPE_CHECKING:  # slow to load, and a single file needs no pool
    from concurrent.futures import Future, ProcessPoolExecutor

WORTH_A_POOL_BYTES = 70 << 20  # unpacked: about 300,000 events, a second of work; a pool starts in a third of that
USUAL_PACKING = 15.0  # of gzip on traces
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
            pending: deque[tuple[Artifact, Future[Reading] | None]] = deque()
            left = iter(artifacts)
            while True:
                while len(pending) < workers * IN_FLIGHT_PER_WORKER and (artifact := next(left, None)) is not None:
                    pending.append((artifact, _submitted(pool, artifact, plan)))
                if not pending:
                    return
                artifact, future = pending.popleft()
                yield _result(artifact, future, plan)


def _submitted(pool: ProcessPoolExecutor, artifact: Artifact, plan: ReadingPlan) -> Future[Reading] | None:
    from concurrent.futures import BrokenExecutor

    if artifact.in_memory:
        return None
    try:
        return pool.submit(reading_of, artifact.bare(), plan)
    except BrokenExecutor:
        return None


def _result(artifact: Artifact, future: Future[Reading] | None, plan: ReadingPlan) -> Reading:
    """A worker that dies (killed for memory) takes nobody else's answer with it."""
    if future is not None:
        from concurrent.futures import BrokenExecutor

        try:
            return future.result()
        except BrokenExecutor:
            pass
    return reading_of(artifact, plan)


def usable_cores() -> int:
    """Cores this process may run on, which containers make fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def work_bytes(artifact: Artifact) -> float:
    """About how much there is to parse."""
    packed = artifact.name.endswith((".gz", ".zip"))
    return artifact.size_bytes * (USUAL_PACKING if packed else 1.0)
