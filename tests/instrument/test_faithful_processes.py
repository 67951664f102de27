"""How a process lives and ends is the same plain, with the API, under `record` and under `run`; every one is started for real."""

from __future__ import annotations

import pytest
from tests.instrument.faithful.ways import jobs, outcome

pytestmark = [pytest.mark.slow]
PROCESS_JOBS = [job for job in jobs() if job.startswith("process_jobs:")]


@pytest.mark.parametrize("job", PROCESS_JOBS)
def test_a_process_lives_and_ends_as_without_us(job: str) -> None:
    plain = outcome(job, "plain")
    for way in ("api", "record", "run"):
        assert plain.differs(outcome(job, way), way) == [], way
