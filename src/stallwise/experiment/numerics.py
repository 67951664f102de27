"""The loss of changed blocks against that of blocks as they are: a change that trains another model is no gain.

One loss a block is kept, that of its last backward pass, and read when the block has ended: nothing is launched for it and
nothing waits for it inside a block.
"""

from __future__ import annotations

import math
import statistics
from typing import Any, Dict, List, Optional

# A difference counts where it is beyond chance (four standard errors), beyond what losses as is vary by, and beyond rounding.
ERRORS, SMALLEST = 4.0, 0.01
FEWEST = 4  # pairs


class Losses:
    """Of one trial."""

    def __init__(self, torch: Any) -> None:
        tensor = getattr(torch, "Tensor", None)
        self._read = getattr(tensor, "item", None)  # as it is before any trial: one of them replaces it
        self._last: Any = None
        self._known: Dict[bool, List[float]] = {False: [], True: []}

    def begin(self) -> None:
        """Another trial."""
        self._last = None
        self._known = {False: [], True: []}

    def add(self, loss: Any) -> None:
        """A backward pass starts from here."""
        try:
            if loss.numel() == 1:
                self._last = loss.detach()
        except (AttributeError, RuntimeError):
            self._last = None  # no tensor, or one that only a compiler sees

    def block_ended(self, changed: bool) -> Optional[str]:
        """Reads the last loss; what is wrong with it where it is no number and those as is were."""
        last, self._last = self._last, None
        if last is None or self._read is None:
            return None
        value = float(self._read(last))
        if not math.isfinite(value):
            return "the loss became %s" % value if changed and self._known[False] else None
        self._known[changed].append(value)
        return None

    def differ(self) -> Optional[str]:
        """How changed blocks differ from those as they are, beyond noise; None where they do not."""
        pairs = list(zip(self._known[False], self._known[True]))
        if len(pairs) < FEWEST:
            return None
        differences = [after - before for before, after in pairs]
        middle, count = statistics.fmean(differences), len(differences)
        chance = ERRORS * statistics.stdev(differences) / math.sqrt(count)
        varies = statistics.stdev(self._known[False])
        before, after = (statistics.fmean(self._known[side][:count]) for side in (False, True))
        if abs(middle) <= max(chance, varies, SMALLEST * abs(before)):
            return None
        return "the loss is %.4g as is and %.4g changed" % (before, after)

    def about(self) -> Dict[str, float]:
        """Means of both sides, where both are known."""
        if not self._known[False] or not self._known[True]:
            return {}
        return {"loss_before": statistics.fmean(self._known[False]), "loss_after": statistics.fmean(self._known[True])}
