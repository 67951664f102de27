"""The last batch again: what the step would take if input were free."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from stallwise.experiment.change import Change, Undo
from stallwise.recorder import schema

MOST_SETTLE = 64  # batches that workers may have ready; a deeper queue is not waited for


class LastBatchAgain(Change):
    """Every batch a loader gives is the last one it gave."""

    name = "last-batch-again"
    title = "the last batch again"
    keeps_loss = False
    causes = ("input-starved", "input-bursty")
    removes = True
    needs = "a loader that keeps up: more workers, cheaper transforms, cached or pre-decoded data"
    risk = "none; an upper bound of what a faster loader wins"
    instead_of = ("double-microbatch",)

    def __init__(self) -> None:
        self._kept: List[Any] = []

    def refuses(self, scene: Any) -> Optional[str]:
        if not scene.iterators:
            return "no DataLoader of PyTorch gave a batch"
        return None

    def expects(self, scene: Any) -> float:
        return float(scene.shares.get(schema.BATCH_WAIT, 0.0))

    def settle_steps(self, scene: Any) -> int:
        """What workers have made meanwhile is used up first, or the loader would look faster than it is."""
        ready = 1
        for iterator in scene.iterators:
            workers = int(getattr(iterator, "_num_workers", 0) or 0)
            ready = max(ready, workers * int(getattr(iterator, "_prefetch_factor", 2) or 2) + 1)
        return min(ready, MOST_SETTLE)

    def apply(self, scene: Any, undo: Undo) -> None:
        kept = self._kept

        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def __next__(iterator: Any) -> Any:
                for of, batch in kept:
                    if of is iterator:
                        return batch
                batch = call(iterator)
                del kept[:-3]
                kept.append((iterator, batch))
                return batch

            return __next__

        undo.later(kept.clear)
        for kind in scene.iterator_classes():
            undo.wrap(kind, "__next__", wrap)
