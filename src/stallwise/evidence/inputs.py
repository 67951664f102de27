"""What a function looks at in the evidence: where none of it is there, it has nothing to say and its module is not loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallwise.evidence.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Inputs:
    """Read off the source (`source_reads`), never typed."""

    quantities: frozenset[str]  # names, as facts or series
    lists: tuple[str, ...]  # fields of Evidence
    labels: tuple[str, ...] = ()  # of a Scope: the kernels, GPUs or ranks that facts speak of
    always: bool = False  # looks at more than its source names, or speaks where nothing was read

    def present(self, evidence: Evidence) -> bool:
        """Whether any of it is there."""
        if self.always or any(getattr(evidence, name) for name in self.lists):
            return True
        if any(evidence.facts.get(name) for name in self.quantities):
            return True
        if any(True for label in self.labels for _ in evidence.scopes(label)):
            return True
        return any(series.quantity.name in self.quantities for series in evidence.all_series)

    def row(self) -> list[object]:
        """For the index."""
        return [sorted(self.quantities), list(self.lists), list(self.labels), self.always]

    @classmethod
    def of(cls, row: Sequence[object]) -> Inputs:
        """From the index."""
        quantities, lists, labels, always = row
        assert isinstance(quantities, list) and isinstance(lists, list) and isinstance(labels, list)
        return cls(frozenset(quantities), tuple(lists), tuple(labels), bool(always))
