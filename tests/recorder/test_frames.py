"""Looking at a job's frames never stops the job, and leaves its collector as it was."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from stallwise.recorder.frames import ALLOCATES_UNDER_LOCK, current_frames

# Every collection meets a dead `threading.local`, whose end asks for the runtime's lock; every allocation may collect.
JOB = """
import gc, sys, threading
from stallwise.recorder.frames import current_frames
look = current_frames if sys.argv[1] == "guarded" else sys._current_frames
class Cycle: pass
def leave():
    c = Cycle(); c.me = c; c.own = threading.local(); c.own.x = 1
stop = threading.Event()
workers = [threading.Thread(target=stop.wait, daemon=True) for _ in range(8)]
for w in workers: w.start()
gc.set_threshold(3, 1, 1)
def deep(n): return deep(n - 1) if n else look()
for i in range(3000):
    leave(); leave()
    assert threading.get_ident() in deep(i % 5)
print("done")
"""


def run(how: str, timeout_s: float) -> str:
    source = str(Path(__file__).parents[2] / "src")
    code = f"import sys; sys.path.insert(0, {source!r})\n" + JOB
    done = subprocess.run(
        [sys.executable, "-c", code, how], capture_output=True, text=True, timeout=timeout_s, check=True
    )
    return done.stdout


def test_a_job_whose_collector_runs_all_the_time_goes_on() -> None:
    assert run("guarded", 60) == "done\n"


@pytest.mark.skipif(not ALLOCATES_UNDER_LOCK, reason="only CPython 3.11 collects while it holds the runtime's lock")
def test_the_job_of_this_test_stops_without_the_guard() -> None:
    try:
        run("plain", 6)
    except subprocess.TimeoutExpired:
        return
    pytest.skip("this build of 3.11 has the fix")


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_stays_as_it_was(on: bool) -> None:
    (gc.enable if on else gc.disable)()
    try:
        assert current_frames()
        assert gc.isenabled() is on
    finally:
        gc.enable()
