"""As many threads as there are cores for this process: launchers often leave one."""

from __future__ import annotations

import os
from typing import Any, Optional

from stallwise.experiment.change import Change, Undo


class MoreThreads(Change):
    """`torch.set_num_threads(cores)` where models run on the CPU."""

    name = "more-threads"
    title = "a thread for every core"
    usual = 0.2
    needs = "OMP_NUM_THREADS, or torch.set_num_threads()"
    risk = "other rounding; crowds out loader workers"

    def refuses(self, scene: Any) -> Optional[str]:
        if scene.device != "cpu":
            return "the models run on a device"
        cores, threads = self._cores(), scene.torch.get_num_threads()
        return "%d threads on %d cores already" % (threads, cores) if threads >= cores else None

    def _cores(self) -> int:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, cores // max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1") or 1)))

    def apply(self, scene: Any, undo: Undo) -> None:
        before = scene.torch.get_num_threads()
        undo.later(lambda: scene.torch.set_num_threads(before))
        scene.torch.set_num_threads(self._cores())
