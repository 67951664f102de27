"""How a process lives and ends is the same plain, with the API, under `record` and under `run`; every job is started for real.

The recording commands themselves are forks of a process that has imported them once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.recorder.faithful.ways import Processes, jobs, outcome

pytestmark = [pytest.mark.slow]
PROCESS_JOBS = [job for job in jobs() if job.startswith("process_jobs:")]


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    """One for all jobs of this module."""
    server = Processes()
    yield server
    server.close()


@pytest.mark.parametrize("job", PROCESS_JOBS)
def test_a_process_lives_and_ends_as_without_us(processes: Processes, job: str) -> None:
    plain = outcome(job, "plain", processes=processes)
    for way in ("api", "record", "run"):
        assert plain.differs(outcome(job, way, processes=processes), way) == [], way
