"""Calls something at the end of the thread that asked for it, on that thread: what a thread holds must not outlive it."""

from __future__ import annotations

import threading
from typing import Callable


class _Held:
    """Let go when its thread ends."""

    __slots__ = ("_then",)

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def __del__(self) -> None:
        self._then()


class ThreadEnd:
    """`then()` runs when a thread ends that has called `ask` and not `forget`."""

    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then
        self._local = threading.local()

    def ask(self) -> None:
        """This thread is meant."""
        self._local.held = _Held(self._call)
        self._local.asked = True

    def forget(self) -> None:
        """This thread is no longer meant."""
        self._local.asked = False
        self._local.held = None

    def _call(self) -> None:
        if getattr(self._local, "asked", True):  # a thread that ends has no local values any more
            self._then()
