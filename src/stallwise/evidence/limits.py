"""What one file may cost before it is given up: seconds and unpacked bytes; and how many are read. Others' answers do not wait for it.

The clock interrupts Python and its regular expressions wherever they are; what runs in a database asks `out_of_time`.
Threads cannot be interrupted: who reads for several people does so in a process of its own. Files are given time by the
wall's clock, for a pipe or a disk may never answer; measures and rules by the processor's, so that a busy machine changes
no answer.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from stallwise.errors import UnreadableInput

FILE_S = 60.0  # for a file of no size; ordinary ones take a second
SLOWEST_BYTES_PER_S = 1e6  # as stored: ten times slower than the slowest reader on a slow machine
STEP_S = 30.0  # of the processor's time, for one measure or one rule over everything that was read
MOST_FILES = 100_000  # that are read in one go: 3 kB of memory and two milliseconds each, if they are tiny
EXAMINATION_S = 120.0  # of it, for all of them together
LEAST_UNPACKED_BYTES = 2 << 30  # whatever the size of the archive
MOST_PACKING = 200.0  # times the stored size: logs pack 10 to 60 times, bombs a thousand
AGAIN_S = 1.0  # somebody may have swallowed the interruption


class OutOfTime(BaseException):
    """Raised in the midst of whatever takes too long; no `except Exception` may hold it up."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Chosen by the user; travels to workers."""

    file_s: float = FILE_S
    unpacked_bytes: int = 0  # 0: by the size of the archive
    files: int = MOST_FILES

    def seconds_for(self, size_bytes: int) -> float:
        """A file may take longer the larger it is."""
        return self.file_s + size_bytes / SLOWEST_BYTES_PER_S

    def unpacked_for(self, size_bytes: int) -> int:
        """How much may come out of an archive of this size."""
        return self.unpacked_bytes or max(LEAST_UNPACKED_BYTES, int(size_bytes * MOST_PACKING))


@dataclass(slots=True)
class _Clock:
    """Which time is counted, and what rings when it is over."""

    now: Callable[[], float]
    timer: str
    signal: str
    deadline: float = float("inf")
    listening: bool = False  # an outer limit hears the bell: an inner one need not ask for it again


_WALL = _Clock(time.monotonic, "ITIMER_REAL", "SIGALRM")
_WORK = _Clock(time.process_time, "ITIMER_PROF", "SIGPROF")
_chosen = Limits()


def current() -> Limits:
    """The limits that hold now."""
    return _chosen


def out_of_time() -> bool:
    """For loops that no signal can interrupt."""
    return any(clock.now() > clock.deadline for clock in (_WALL, _WORK))


@contextmanager
def within(limits: Limits) -> Iterator[None]:
    """These limits hold inside."""
    global _chosen
    before, _chosen = _chosen, limits
    try:
        yield
    finally:
        _chosen = before


def at_most(seconds: float) -> AbstractContextManager[None]:
    """Raises OutOfTime inside when so much time has passed; in a thread, where nothing can be interrupted, it only sets the clock."""
    return _limited(seconds, _WALL)


def at_most_of_work(seconds: float) -> AbstractContextManager[None]:
    """The same by this process's own work: what waits for a turn on a busy machine is not counted."""
    return _limited(seconds, _WORK)


@contextmanager
def _limited(seconds: float, clock: _Clock) -> Iterator[None]:
    outer, clock.deadline = clock.deadline, min(clock.deadline, clock.now() + seconds)
    can_interrupt = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not can_interrupt:
        try:
            yield
        finally:
            clock.deadline = outer
        return
    timer, rings = getattr(signal, clock.timer), getattr(signal, clock.signal)
    began = clock.now()
    outermost = not clock.listening
    before = signal.signal(rings, _interrupt) if outermost else None
    clock.listening = True
    left, again = signal.setitimer(timer, max(clock.deadline - began, 1e-3), AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(timer, 0.0)
        if outermost:
            clock.listening = False
            signal.signal(rings, before if before is not None else signal.SIG_DFL)
        clock.deadline = outer
        if left:  # somebody else's alarm, or the outer limit's
            signal.setitimer(timer, max(left - (clock.now() - began), 1e-3), again)


def _interrupt(*_: object) -> None:
    raise OutOfTime


def too_much(name: str, size_bytes: int) -> UnreadableInput:
    """The sentence for an archive that does not end."""
    return UnreadableInput(
        f"{name} unpacks to more than {current().unpacked_for(size_bytes) / 1e9:.1f} GB",
        hint="unpack it by hand, or raise --max-unpacked",
    )
