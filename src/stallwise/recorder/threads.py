"""Threads of ours. The library's own way to start one is kept from before the job's first line: a job may put another in its place."""

from __future__ import annotations

import threading
from typing import Callable

_start = threading.Thread.start


def begin(run: Callable[[], None], name: str) -> threading.Thread:
    """Starts a thread that never keeps the job alive."""
    thread = threading.Thread(target=run, name=name, daemon=True)
    _start(thread)
    return thread
