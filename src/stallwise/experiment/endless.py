"""In a rehearsal a training loader that comes to its end begins again, so that short jobs can be tried, too.

Only loaders that fed steps: an evaluation must come to its end, or the job would never step again.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, List

from stallwise.recorder.patches import Patches

FED = 0.5  # of its batches came with a step


class Endless:
    """Watches loaders from the start of the job until its trials are done."""

    def __init__(self, torch: Any, recorder: Any, classes: List[Any], over: Callable[[], bool]) -> None:
        self.rounds = 0
        self._recorder = recorder
        self._over = over
        self._seen: "weakref.WeakKeyDictionary[Any, Dict[str, Any]]" = weakref.WeakKeyDictionary()
        self._patches = Patches()
        self._patches.wrap(torch.utils.data.DataLoader, "__iter__", self._opening)
        for kind in classes:
            self._patches.wrap(kind, "__next__", self._giving)

    def remove(self) -> None:
        """Loaders end where they end."""
        self._patches.remove()

    def loader_of(self, iterator: Any) -> Any:
        """The loader that this iterator walks over, where it was seen to open."""
        seen = self._seen.get(iterator)
        return seen["loader"] if seen is not None else None

    def _opening(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def __iter__(loader: Any) -> Any:
            iterator = call(loader)
            try:
                self._seen[iterator] = {"loader": loader, "from": self._recorder.number, "given": 0, "now": None}
            except TypeError:
                pass  # not weakly referable: it ends where it ends
            return iterator

        return __iter__

    def _giving(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def __next__(iterator: Any) -> Any:
            seen = self._seen.get(iterator)
            if seen is None:
                return call(iterator)
            seen["given"] += 1
            try:
                return call(seen["now"] or iterator)
            except StopIteration:
                steps = self._recorder.number - seen["from"]
                if self._over() or not steps or steps < FED * (seen["given"] - 1):
                    raise
            self.rounds += 1
            seen["now"] = seen["loader"]._get_iterator()
            return call(seen["now"])

        return __next__
