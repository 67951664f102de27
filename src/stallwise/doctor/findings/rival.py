"""What else could show the same symptom: why it comes later in the list, and the check that tells the two apart."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.evidence.evidence import Evidence
from stallwise.evidence.quantity import Quantity


@dataclass(frozen=True, slots=True)
class Rival:
    """Another cause of the same symptom, in the order in which an engineer rules them out: the common one first."""

    cause: str
    less_likely: str  # what speaks for looking at it later
    check: str  # the artifact or command that decides
    ruled_out: Quantity | None = None  # a flag that excludes it
    by: bool = False  # the flag's value that does

    def open(self, evidence: Evidence) -> bool:
        """Whether nothing in the evidence excludes it."""
        fact = evidence.get(self.ruled_out) if self.ruled_out is not None else None
        return fact is None or isinstance(fact.value, str) or bool(fact.number) is not self.by
