"""Which lines of the user's hold PyTorch's loader workers: stacks sampled inside each worker process, in a file a worker.

The main thread only waits while workers make a batch, so its own stacks say nothing of why a batch is late. A worker that was forked
runs this beside its loop; one that was spawned begins without us, and nothing is recorded of it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from itertools import takewhile
from typing import Any, Callable, Dict, List, Tuple

from stallwise.recorder import threads
from stallwise.recorder.error_origin import quietly
from stallwise.recorder.frames import current_stack
from stallwise.recorder.line_names import LineNames
from stallwise.recorder.patches import Patches
from stallwise.recorder.sampler import DEPTH, EVERY_S

WRITE_EVERY_S = 1.0  # a worker is ended from outside as a rule: what was counted since the last line is lost then
MOST_STACKS = 2_000
LOOP = "_worker_loop"
MODULE = "torch.utils.data._utils.worker"


def watch_loader_workers(patches: Patches, recorder: Any) -> None:
    """Workers that are forked from now on count their own stacks."""
    module = sys.modules.get(MODULE)
    if module is not None:
        patches.wrap(module, LOOP, lambda loop: _watched(loop, recorder, os.getpid()))


def _watched(loop: Callable[..., Any], recorder: Any, parent: int) -> Callable[..., Any]:
    def worker_loop(*args: Any, **kwargs: Any) -> Any:
        if os.getpid() != parent:
            quietly(_begin, recorder)
        return loop(*args, **kwargs)

    return worker_loop


def _begin(recorder: Any) -> None:
    folder = os.path.dirname(recorder.writer.path)
    path = os.path.join(folder, "loader-%d-%d.jsonl" % (os.getppid(), os.getpid()))
    counts = WorkerStacks(path, recorder.rank, threading.get_ident())
    threads.begin(counts.run, "stallwise-worker-stacks")


class WorkerStacks:
    """Counts the stacks of one worker's loop and appends the counts so far to its file."""

    def __init__(self, path: str, rank: int, thread: int) -> None:
        self._path, self._rank, self._thread = path, rank, thread
        self._names = LineNames()
        self._ids: Dict[Tuple[int, ...], int] = {}
        self._counts: Dict[int, int] = {}
        self._written = False

    def run(self) -> None:
        """Until the process ends."""
        next_s = time.monotonic() + WRITE_EVERY_S
        while True:
            time.sleep(EVERY_S)
            self.look()
            if time.monotonic() >= next_s:
                self.write()
                next_s = time.monotonic() + WRITE_EVERY_S

    def look(self) -> None:
        """One stack: the frames inside the loop, innermost first; without any the worker waits for its next order."""
        inside = takewhile(lambda place: place[0].co_name != LOOP, current_stack(self._thread, DEPTH))
        stack = tuple(map(self._names.number, inside))
        if len(self._ids) >= MOST_STACKS and stack not in self._ids:
            return
        number = self._ids.setdefault(stack, len(self._ids))
        self._counts[number] = self._counts.get(number, 0) + 1

    def write(self) -> None:
        """One append of what is new; counts are of the whole time, so the last line holds them all."""
        out: List[Dict[str, Any]] = []
        if not self._written:
            self._written = True
            out.append({"k": "loader", "rank": self._rank, "pid": os.getpid(), "t": time.time()})
        out += self._names.take()
        known = [{"id": number, "lines": stack, "count": self._counts[number]} for stack, number in self._ids.items()]
        out.append({"k": "worker_stacks", "stacks": known})
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in out)
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            os.write(file, text.encode("utf-8", "replace"))
        finally:
            os.close(file)
