"""Bytes of memory beside the steps: the process and its children, shared memory, the device's allocator and pinned host memory.

Nothing waits for the device, and no counter of the user's is reset: the peak is the one since the process began. The process and
what is allocated are read every so many steps, as a leak is a slope over steps; the rest costs tens of microseconds more and is
read every other second at most.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional

from stallwise.recorder.growing import Growing

if TYPE_CHECKING:
    from stallwise.recorder.recorder import Recorder

EVERY_STEPS = 20
REST_EVERY_S = 2.0
MOST_THREADS = 256
PAGE = 4096
SHARED_MEMORY = "/dev/shm"
RISES = 6  # marks in a row, each higher than the one before
RISEN_BYTES = 64 << 20  # over them: an arena of the C library
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def host_memory() -> int:
    """Bytes that the host has, or its control group may take where that is less; 0 where nobody says."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0
    for path in LIMITS:
        try:
            with open(path, encoding="ascii") as file:
                found = min(found, int(file.read()))
        except (OSError, ValueError):
            continue  # no such group, or no limit: "max"
    return found


class MemoryAccount:
    """Gauges of one process."""

    def __init__(self, recorder: "Recorder") -> None:
        self._recorder = recorder
        self._rest_from_s = 0.0
        self._risen: Dict[str, List[float]] = {"host_memory_bytes": [], "gpu_memory_bytes": []}
        self._growing: Optional[Growing] = Growing()

    def on_step(self, number: int) -> None:
        """After every step."""
        if number % EVERY_STEPS:
            return
        now_s = time.monotonic()
        rest = now_s >= self._rest_from_s
        if rest:
            self._rest_from_s = now_s + REST_EVERY_S
        torch = sys.modules.get("torch")
        if self._recorder.device is not None and torch is not None:
            self._take(_of_device(torch, rest))
        try:
            self._take({"host_memory_bytes": pages("self")[0] * PAGE})
            if rest:
                self._take(_of_host())
        except (OSError, ValueError, IndexError, AttributeError):
            pass  # not Linux
        if self._growing is not None and any(map(_rises, self._risen.values())):
            self._look(number)

    def _take(self, numbers: Dict[str, float]) -> None:
        for name, value in numbers.items():
            self._recorder.gauge(name, value)
            if name in self._risen:
                self._risen[name] = [v for v in self._risen[name][1 - RISES :] if v < value] + [value]

    def _look(self, number: int) -> None:
        """Twice, at two marks one after the other; never again."""
        found = self._growing.look(number) if self._growing is not None else None
        if found is not None:
            self._growing = None
            for entry in found:
                self._recorder.writer.put({"k": "grows", "n": number, **entry})


def _rises(marks: List[float]) -> bool:
    return len(marks) == RISES and marks[-1] - marks[0] > RISEN_BYTES


def _of_device(torch: Any, rest: bool) -> Dict[str, float]:
    """One look at the allocator's counters tells all three; of pinned memory newer releases tell."""
    counters = torch.cuda.memory_stats_as_nested_dict()
    if not counters:
        return {"gpu_memory_bytes": 0}
    allocated = counters["allocated_bytes"]["all"]
    found = {
        "gpu_memory_bytes": allocated["current"],
        "gpu_peak_bytes": allocated["peak"],
        "gpu_reserved_bytes": counters["reserved_bytes"]["all"]["current"],
    }
    of_host = getattr(torch.cuda.memory, "host_memory_stats_as_nested_dict", None)
    if rest and of_host is not None:
        found["pinned_memory_bytes"] = of_host().get("allocated_bytes", {}).get("current", 0)
    return found


def _of_host() -> Dict[str, float]:
    room = os.statvfs(SHARED_MEMORY)
    own = [pages(child) for child in children(os.getpid())]
    found: Dict[str, float] = {"shared_memory_bytes": (room.f_blocks - room.f_bfree) * room.f_frsize}
    if own:
        found["children_memory_bytes"] = sum(resident - shared for resident, shared in own) * PAGE
    return found


def pages(process: str) -> "tuple[int, int]":
    """Resident pages, and those of them that others may share."""
    try:
        with open("/proc/%s/statm" % process, "rb") as file:
            numbers = file.read().split()
    except FileNotFoundError:  # ended meanwhile
        return 0, 0
    return int(numbers[1]), int(numbers[2])


def children(process: int) -> Iterator[str]:
    """Processes that any thread of this one has begun: loader workers above all."""
    for thread in os.listdir("/proc/%d/task" % process)[:MOST_THREADS]:
        try:
            with open("/proc/%d/task/%s/children" % (process, thread), encoding="ascii") as file:
                yield from file.read().split()
        except OSError:
            continue  # the kernel tells no children, or the thread has ended
