"""The running frames of all threads, read so that the job cannot deadlock over it and nothing of its is held.

Whoever holds a frame decides when the frame's variables are freed, and on which thread: the job's own finalizers would run on a
thread of ours, or later than the job expects. Between two lines of Python the interpreter lock may change hands, so a stack is read
in one chain of built-in calls, which keeps the lock, and leaves only code objects and positions behind.

CPython 3.11 builds frame objects while it holds the lock of its runtime. If that allocation starts a garbage collection, and what is
collected needs the same lock (any `threading.local`) or lets another thread run, the process stops for good
(https://github.com/python/cpython/issues/106883). Collection is therefore off for the call. Since 3.12 an allocation starts no
collection, and before 3.11 frames existed already.
"""

from __future__ import annotations

import gc
import operator
import sys
from collections import deque
from itertools import accumulate, chain, islice, repeat, starmap, takewhile
from typing import Any, Dict, Iterator, List, Tuple

ALLOCATES_UNDER_LOCK = sys.version_info[:2] == (3, 11)
_QUIET = (gc.isenabled, gc.disable)
_call: Any = getattr(operator, "call", None)  # since 3.11
_FIRST = operator.itemgetter(0)
_AS_BEFORE = {True: gc.enable, False: gc.disable}
_PLACE = operator.attrgetter("f_code", "f_lasti")

Place = Tuple[Any, int]  # a code object and the instruction in it


def current_frames() -> Dict[int, Any]:
    """Thread identifier to its innermost frame."""
    if not ALLOCATES_UNDER_LOCK:
        return sys._current_frames()
    frames: Dict[int, Any] = _without_collection(_frames())[0]
    return frames


def current_stack(thread: int, depth: int) -> List[Place]:
    """Where a thread is, innermost first; nothing where it has ended. No frame outlives the call."""
    try:
        return _without_collection(_places(thread, depth)) if ALLOCATES_UNDER_LOCK else list(_places(thread, depth))
    except KeyError:
        return []


def own_stack(depth: int) -> List[Place]:
    """Where the calling thread is, from the caller's caller outwards."""
    places: List[Place] = []
    frame: Any = sys._getframe(2)
    while frame is not None and len(places) < depth:
        places.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return places


def _frames() -> Iterator[Any]:
    return starmap(sys._current_frames, ((),))


def _places(thread: int, depth: int) -> Iterator[Place]:
    """Lazily, and without a line of Python once it has begun: `getattr(frame, "f_back")` again and again until there is none.

    At its end `islice` lets go of all before it, the last frame among them.
    """
    innermost = map(operator.itemgetter(thread), _frames())
    frames = accumulate(chain(innermost, repeat("f_back")), getattr)
    return map(_PLACE, islice(takewhile(operator.truth, frames), depth))


def _without_collection(look: Iterator[Any]) -> List[Any]:
    """What `look` yields, in one chain of built-in calls: no other thread can see or change the setting meanwhile."""
    got: List[Any] = []
    quiet = map(got.append, map(_call, _QUIET))
    restore = map(_call, map(_AS_BEFORE.__getitem__, map(_FIRST, [got])))
    try:
        deque(chain(quiet, map(got.append, look), restore), maxlen=0)
    except BaseException:
        if got and got[0]:
            gc.enable()
        raise
    return got[len(_QUIET) :]
