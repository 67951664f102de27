"""What the trials found, in one file of the bundle: written after every trial, so that a job that dies leaves what is known."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional

from stallwise.experiment import paired

SCHEMA = "stallwise.trials/1"
FILE = "trials.json"
NOT_HERE, FAILED, MEMORY, NOT_REACHED, WOULD, STOPPED, LOSS = (
    "not applicable", "failed", "out of memory", "not reached", "would be tried", "interrupted", "loss changed",
)  # fmt: skip


class Result:
    """One line of the table."""

    def __init__(self, change: Any, state: str = "", why: str = "") -> None:
        self.name: str = change.name
        self.about: Dict[str, Any] = {
            "name": change.name,
            "title": change.title,
            "causes": list(change.causes),
            "alters_training": change.alters,
            "removes_cause": change.removes,
            "keeps_loss": change.keeps_loss,
            "needs": change.needs,
            "risk": change.risk,
        }
        self.state = state
        self.why = why
        self.estimate: Optional[paired.Estimate] = None
        self.before_s: List[float] = []
        self.after_s: List[float] = []
        self.more: Dict[str, Any] = {}

    @property
    def faster(self) -> bool:
        """A gain was measured."""
        return self.state == paired.FASTER

    def to_dict(self) -> Dict[str, Any]:
        """Plain containers. `ratio` is the step before over the step after: 1.24 is 1.24 times as fast."""
        found: Dict[str, Any] = {**self.about, "state": self.state, "why": self.why}
        if self.estimate is not None and self.before_s:
            before_s = _middle(self.before_s)
            e = self.estimate
            found.update(
                before_s=before_s,
                after_s=before_s / e.ratio,
                ratio=e.ratio,
                ratio_low=e.low,
                ratio_high=e.high if e.high != float("inf") else None,
                saved_s=before_s * (1.0 - 1.0 / e.ratio),
                saved_low_s=before_s * (1.0 - 1.0 / e.low) if e.low > 0 else None,
                saved_high_s=before_s * (1.0 - 1.0 / e.high) if e.high != float("inf") else None,
                pairs=e.pairs,
                before_blocks_s=self.before_s,
                after_blocks_s=self.after_s,
            )
        found.update(self.more)
        return found


class Results:
    """All of them, and what was agreed before."""

    def __init__(self, folder: str, writes: bool = True) -> None:
        self._path = os.path.join(folder, FILE)
        self._writes = writes
        self.about: Dict[str, Any] = {"schema": SCHEMA}
        self.trials: List[Result] = []
        self.together: Optional[Dict[str, Any]] = None

    def add(self, result: Result) -> None:
        """One more is known."""
        self.trials.append(result)
        self.write()

    def write(self) -> None:
        """A reader never finds half of it."""
        if not self._writes:
            return
        found = {**self.about, "trials": [t.to_dict() for t in self.trials], "together": self.together}
        with open(self._path + ".part", "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
        os.replace(self._path + ".part", self._path)


def _middle(values: List[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else 0.5 * (ordered[half - 1] + ordered[half])
