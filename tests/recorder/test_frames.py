"""Looking at a job's frames never stops the job, and leaves its collector as it was."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from stallwise.recorder.frames import ALLOCATES_UNDER_LOCK, current_frames, current_stack

# Every collection meets a dead `threading.local`, whose end asks for the runtime's lock; every allocation may collect.
JOB = """
import gc, sys, threading
from stallwise.recorder.frames import current_frames, current_stack
guarded = lambda: current_stack(threading.get_ident(), 4) and current_frames()
look = guarded if sys.argv[1] == "guarded" else sys._current_frames
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


def test_a_stack_is_the_frames_from_the_innermost(deep: int = 3) -> None:
    if deep:
        test_a_stack_is_the_frames_from_the_innermost(deep - 1)
        return
    me = sys._getframe()
    places = current_stack(threading.get_ident(), 6)
    mine = [place for place in places if place[0] is me.f_code]
    assert len(places) == 6 and len(mine) == 4  # the reader's own frame or two stand before them
    assert current_stack(-1, 6) == []


def test_what_a_thread_frees_is_freed_by_it() -> None:
    """Whoever holds its frame would free its variables: as many looks as switches of the interpreter lock."""
    freed_by: set[int] = set()

    class Mine:
        def __del__(self) -> None:
            freed_by.add(threading.get_ident())

    def work(left: int = 3) -> None:
        if left:
            work(left - 1)
            return
        mine = Mine()
        with contextlib.suppress(ValueError):
            raise ValueError(id(mine))

    def look(me: int) -> None:
        while not over.is_set():
            for depth in (3, 40):
                assert current_stack(me, depth)

    over, usual_s = threading.Event(), sys.getswitchinterval()
    looking = threading.Thread(target=look, args=(threading.get_ident(),))
    sys.setswitchinterval(1e-6)
    try:
        looking.start()
        until_s = time.monotonic() + 1.0
        while time.monotonic() < until_s:
            work()
    finally:
        sys.setswitchinterval(usual_s)
        over.set()
        looking.join()
    assert freed_by == {threading.get_ident()}
