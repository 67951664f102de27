"""What this process got from whoever started it, and the job gets from us: descriptors above 2, and streams that are closed."""

from __future__ import annotations

import os
import sys
from typing import List, Set

MOST_DESCRIPTORS = 1024  # looked at where there is no /proc
_closed: Set[int] = set()


def keep_closed_streams() -> None:
    """Called before anything is opened: a stream that is closed stays closed for the job, and nothing of ours gets its number.

    Python's own streams write to nowhere then, as they would without us.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            _closed.add(number)
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is this one; no job inherits it
    if _closed:
        nowhere = open(os.devnull, "w")  # noqa: SIM115
        sys.stdout = sys.stdout or nowhere
        sys.stderr = sys.stderr or nowhere


def is_closed(number: int) -> bool:
    """This stream was closed when we were started."""
    return number in _closed


def descriptors() -> List[int]:
    """Those above 2 that whoever started us handed on: a file (`3>log`), make's jobserver, `<(...)`.

    Python opens nothing that a child inherits, so all that can be inherited came from outside.
    """
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except (OSError, ValueError):
        numbers = list(range(3, MOST_DESCRIPTORS))
    return [number for number in numbers if number > 2 and _is_handed_on(number)]


def _is_handed_on(number: int) -> bool:
    try:
        return os.get_inheritable(number)
    except OSError:
        return False


def let_go(numbers: List[int]) -> None:
    """The job has them: whoever reads at their other end waits for the job's end, not for ours."""
    for number in numbers:
        try:
            os.close(number)
        except OSError:
            pass
