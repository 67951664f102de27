"""More loader workers: the job's own loader, opened once more with as many processes as this machine can run beside the loop."""

from __future__ import annotations

import copy
import os
from typing import Any, Callable, Dict, List, Optional

from stallwise.experiment.change import Change, Undo
from stallwise.recorder import schema

MOST = 8  # workers: a rank is one of several on most machines, and each takes host memory
AHEAD = 2  # batches that each has ready, PyTorch's own default


class LoaderWorkers(Change):
    """Batches come from a second iterator over the same loader, with more workers."""

    name = "loader-workers"
    title = "more loader workers"
    keeps_loss = False  # the second iterator begins at the first batch again
    causes = ("input-starved",)
    needs = "DataLoader(num_workers=...)"
    risk = "host memory; a dataset that can be used in several processes"
    instead_of = ("last-batch-again", "double-microbatch")

    def __init__(self) -> None:
        self._workers = 0
        self._own: Dict[int, Any] = {}  # by the job's iterator
        self._loaders: Dict[int, Any] = {}

    def refuses(self, scene: Any) -> Optional[str]:
        if not scene.iterators:
            return "no DataLoader of PyTorch gave a batch"
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._workers = min(MOST, cores - 1)
        has = max(int(getattr(i, "_num_workers", 0) or 0) for i in scene.iterators)
        if self._workers <= has:
            return "it has %d workers, and this machine %d cores" % (has, cores)
        self._loaders = {id(i): scene.loader_of(i) for i in scene.iterators if scene.loader_of(i) is not None}
        if not self._loaders:
            return "its loader is not known"
        if any(hasattr(loader.dataset, "__iter__") and not hasattr(loader.dataset, "__getitem__")
               for loader in self._loaders.values()):  # fmt: skip
            return "an iterable dataset is shared out among workers by its author"
        self.needs = "DataLoader(num_workers=%d)" % self._workers
        self.title = "%d loader workers instead of %d" % (self._workers, has)
        return None

    def expects(self, scene: Any) -> float:
        return float(scene.shares.get(schema.BATCH_WAIT, 0.0))

    def settle_steps(self, scene: Any) -> int:
        """What workers have made while they were not asked is used up first."""
        return self._workers * AHEAD + 1

    def begin(self, scene: Any, undo: Undo) -> None:
        undo.later(self._close)

    def apply(self, scene: Any, undo: Undo) -> None:
        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def __next__(iterator: Any) -> Any:
                if id(iterator) not in self._loaders:
                    return call(iterator)
                own = self._own.get(id(iterator)) or self._open(iterator)
                try:
                    return call(own)
                except StopIteration:
                    return call(self._open(iterator))

            return __next__

        for kind in scene.iterator_classes():
            undo.wrap(kind, "__next__", wrap)

    def _open(self, iterator: Any) -> Any:
        """An iterator with more workers over the same loader; one that came to its end has closed its own."""
        more = copy.copy(self._loaders[id(iterator)])
        more.num_workers, more.prefetch_factor = self._workers, AHEAD
        self._own[id(iterator)] = made = more._get_iterator()
        return made

    def _close(self) -> None:
        opened: List[Any] = list(self._own.values())
        self._own.clear()
        for one in opened:
            one._shutdown_workers()
