"""A piece of evidence that moves a hypothesis: a test, and how much likelier its outcome is under the cause."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stallwise.evidence.evidence import Evidence
from stallwise.evidence.quantity import Quantity


@dataclass(frozen=True, slots=True)
class Clue:
    """`ratio` = P(holds | cause) / P(holds | another cause); `otherwise` the same for not holding."""

    reads: tuple[Quantity, ...]
    holds: Callable[[Evidence], bool | None]  # None: the evidence does not tell
    ratio: float
    otherwise: float
    says: str  # the sentence for the report when it holds
    says_not: str = ""  # and when it does not

    def weigh(self, evidence: Evidence) -> tuple[float, str] | None:
        """The likelihood ratio to multiply by and the sentence that says why; None when unknown."""
        if not all(evidence.all(q) or evidence.series(q) for q in self.reads):
            return None
        outcome = self.holds(evidence)
        if outcome is None:
            return None
        return (self.ratio, self.says) if outcome else (self.otherwise, self.says_not or f"not so: {self.says}")
