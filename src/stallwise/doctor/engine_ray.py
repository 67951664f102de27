"""A Ray cluster, or a local Ray where none runs: files are read where they lie, only small readings travel."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import Any

from stallwise.doctor.reading import Reading, ReadingPlan, reading_of
from stallwise.errors import MissingExtra, StallwiseError
from stallwise.evidence.artifact import Artifact

IN_FLIGHT_PER_CPU = 4


class RayEngine:
    """Uses the cluster of RAY_ADDRESS or a running one; starts a local one otherwise."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers

    def readings(self, artifacts: list[Artifact], plan: ReadingPlan) -> Iterator[Reading]:
        """In the order of the artifacts."""
        ray = _connected(self.workers)
        away = ray.remote(max_retries=1)(reading_of)
        room = max(int(ray.cluster_resources().get("CPU", 1)), 1) * IN_FLIGHT_PER_CPU
        pending: deque[tuple[Artifact, Any]] = deque()
        left = iter(artifacts)
        while True:
            while len(pending) < room and (artifact := next(left, None)) is not None:
                there = None if artifact.in_memory else away.remote(artifact.bare(), plan)
                pending.append((artifact, there))
            if not pending:
                return
            artifact, there = pending.popleft()
            yield reading_of(artifact, plan) if there is None else _fetched(ray, artifact, there)


def _fetched(ray: Any, artifact: Artifact, there: Any) -> Reading:
    try:
        reading: Reading = ray.get(there)
    except ray.exceptions.RayError as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Reading(artifact.name, problem=StallwiseError(f"a Ray worker failed on {artifact.name}: {first}"))
    return reading


def _connected(workers: int | None) -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("ray", "ray") from error
    if ray.is_initialized():
        return ray
    quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    try:
        if os.environ.get("RAY_ADDRESS"):
            ray.init(**quiet)
        else:
            ray.init(num_cpus=workers, include_dashboard=False, **quiet)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise StallwiseError(
            f"cannot reach or start Ray: {error}", hint="check RAY_ADDRESS, or use --engine local"
        ) from error
    return ray
