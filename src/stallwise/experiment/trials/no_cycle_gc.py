"""No collector pauses: Python's garbage collector off during the changed blocks."""

from __future__ import annotations

import gc
from typing import Any, Optional

from stallwise.experiment.change import Change, Undo


class NoCycleGc(Change):
    """Cycles are collected after the block instead of in it."""

    name = "no-collector"
    title = "Python's garbage collector off"
    usual = 0.01
    causes = ("python-gc-pauses",)
    removes = True
    alters = False
    needs = "gc.disable(), and gc.collect() on all ranks every so many steps"
    risk = "memory held by cycles grows between collections"

    def refuses(self, scene: Any) -> Optional[str]:
        return None if gc.isenabled() else "the job has turned the collector off itself"

    def apply(self, scene: Any, undo: Undo) -> None:
        def back() -> None:
            gc.enable()
            gc.collect()

        gc.collect()  # as the way back does: both sides begin with a clean house, and after the same pause
        gc.disable()
        undo.later(back)
