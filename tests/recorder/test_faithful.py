"""A job is the same plain, with the API, under `record` and under `run`: exit code, output, numbers, files, freed memory.

The jobs are programs in tests/recorder/faithful. Those of PyTorch run as forks of a process that has imported it once, the
commands included; a choice of them from their interpreter's first line on, each in a process of its own. Those about processes are
in test_faithful_processes.
`python tests/recorder/faithful/ways.py` runs all of them in every way, each in processes of its own (some ten minutes).
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator

import pytest
from tests.recorder.faithful.ways import Forks, Processes, jobs, outcome

pytestmark = [pytest.mark.slow]
NEEDS_TORCH = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="needs CPU PyTorch: pip install torch"
)
PROCESS_JOBS = [job for job in jobs() if job.startswith("process_jobs:")]
TORCH_JOBS = [job for job in jobs() if not job.startswith("process_jobs:")]
TORCH_UNDER_RUN = ("worker_killed", "own_profiler_into_the_window", "in_four_threads_at_once", "compile_in_place")


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    """One process for all jobs of this module."""
    server = Forks()
    yield server
    server.close()


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    """The command that records is a fork of one that has imported what it needs; the jobs are started for real."""
    server = Processes()
    yield server
    server.close()


def test_there_are_enough_jobs_of_every_kind() -> None:
    assert len(TORCH_JOBS) + len(PROCESS_JOBS) >= 120
    assert len(PROCESS_JOBS) >= 40


@NEEDS_TORCH
@pytest.mark.torch
@pytest.mark.parametrize("job", TORCH_JOBS)
def test_pytorch_computes_the_same_with_a_recorder_inside(forks: Forks, job: str) -> None:
    plain = forks.outcome(job, "plain")
    commands = ("record", "run")  # the same recorder, started by two verbs: in turn, all under STALLWISE_FULL
    chosen = commands if os.environ.get("STALLWISE_FULL") else (commands[TORCH_JOBS.index(job) % 2],)
    for way in ("api", *chosen):
        assert plain.differs(forks.outcome(job, way), way) == [], way


@NEEDS_TORCH
@pytest.mark.torch
@pytest.mark.parametrize("name", TORCH_UNDER_RUN)
def test_a_pytorch_job_under_run_is_the_same_from_its_first_line_on(processes: Processes, name: str) -> None:
    job = next(job for job in TORCH_JOBS if job.endswith(f":{name}"))
    plain, run = (outcome(job, way, processes=processes) for way in ("plain", "run"))
    assert plain.differs(run, "run") == []
