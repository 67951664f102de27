"""The running frames of all threads, read so that the job cannot deadlock over it.

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
from itertools import chain
from typing import Any, Dict, List

ALLOCATES_UNDER_LOCK = sys.version_info[:2] == (3, 11)
_LOOK = (gc.isenabled, gc.disable, sys._current_frames)
_call: Any = getattr(operator, "call", None)  # since 3.11
_FIRST = operator.itemgetter(0)
_AS_BEFORE = {True: gc.enable, False: gc.disable}


def current_frames() -> Dict[int, Any]:
    """Thread identifier to its innermost frame."""
    return _without_collection() if ALLOCATES_UNDER_LOCK else sys._current_frames()


def _without_collection() -> Dict[int, Any]:
    """One chain of built-in calls: no Python code runs in it, so no other thread can see or change the setting meanwhile."""
    got: List[Any] = []
    look = map(got.append, map(_call, _LOOK))
    restore = map(_call, map(_AS_BEFORE.__getitem__, map(_FIRST, [got])))
    try:
        deque(chain(look, restore), maxlen=0)
    except BaseException:
        if got and got[0]:
            gc.enable()
        raise
    frames: Dict[int, Any] = got[2]
    return frames
