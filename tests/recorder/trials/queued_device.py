"""A device with a queue, as a GPU has one: the host hands over work and goes on; `synchronize` waits until all is done.

The queue is worked off by a thread of its own. How long anything takes is said in the seconds of a clock that only work and
waiting move, so that a busy machine does not count. It stands behind the names of `torch.cuda`, so that trials and borders
meet it where they would meet a GPU.
"""

from __future__ import annotations

import queue
import threading
from types import SimpleNamespace
from typing import Any

import pytest
import torch

DEEPEST = 1000  # launches that a GPU takes before the host has to wait


class Event:
    """Passes when the queue comes to it."""

    def __init__(self, device: QueuedDevice) -> None:
        self._device = device
        self.passed_s: float | None = None

    def record(self) -> None:
        """Into the queue."""
        self.passed_s = None
        self._device.launch(self)

    def elapsed_time(self, later: Event) -> float:
        """Milliseconds; as with a GPU both must have passed."""
        if self.passed_s is None or later.passed_s is None:
            raise RuntimeError("device not ready")
        return (later.passed_s - self.passed_s) * 1e3


class QueuedDevice:
    """Work is so many seconds long; the next begins where the last ends, or when it is handed over."""

    def __init__(self) -> None:
        self._work: queue.Queue[Any] = queue.Queue(DEEPEST)
        self._free_at = 0.0
        self.now_s = 0.0  # on the host
        self.drained = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def host_works(self, seconds: float) -> None:
        """Between two launches."""
        self.now_s += seconds

    def launch(self, what: float | Event) -> None:
        """Hands work over and returns."""
        self._work.put((self.now_s, what))

    def synchronize(self, device: Any = None) -> None:
        """Returns when the queue is empty and the last work done."""
        self.drained += 1
        self._work.join()
        self.now_s = max(self.now_s, self._free_at)

    def close(self) -> None:
        """Ends the thread."""
        self._work.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            handed_s, what = work
            self._free_at = max(self._free_at, handed_s)
            if isinstance(what, Event):
                what.passed_s = self._free_at
            else:
                self._free_at += what
            self._work.task_done()

    def stands_for_cuda(self, patch: pytest.MonkeyPatch) -> None:
        """Behind the names of `torch.cuda`."""
        names: dict[str, Any] = {
            "is_initialized": lambda: True,
            "synchronize": self.synchronize,
            "current_device": lambda: 0,
            "device_count": lambda: 1,
            "memory_reserved": lambda device=None: 0,
            "max_memory_reserved": lambda device=None: 0,
            "max_memory_allocated": lambda device=None: 0,
            "reset_peak_memory_stats": lambda device=None: None,
            "get_device_properties": lambda device=None: SimpleNamespace(total_memory=1 << 30),
            "empty_cache": lambda: None,
            "Event": lambda enable_timing=False: Event(self),
        }
        for name, call in names.items():
            patch.setattr(torch.cuda, name, call)
