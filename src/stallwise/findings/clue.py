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


def above(quantity: Quantity, limit: float, ratio: float, otherwise: float, says: str, says_not: str = "") -> Clue:
    """Holds when the largest value of the quantity exceeds the limit."""

    def holds(evidence: Evidence) -> bool | None:
        numbers = [f.number for f in evidence.all(quantity) if f.scope.run != "before"]
        return max(numbers) > limit if numbers else None

    return Clue((quantity,), holds, ratio, otherwise, says, says_not)


def below(quantity: Quantity, limit: float, ratio: float, otherwise: float, says: str, says_not: str = "") -> Clue:
    """Holds when the smallest value of the quantity is under the limit."""

    def holds(evidence: Evidence) -> bool | None:
        numbers = [f.number for f in evidence.all(quantity) if f.scope.run != "before"]
        return min(numbers) < limit if numbers else None

    return Clue((quantity,), holds, ratio, otherwise, says, says_not)


def yes(quantity: Quantity, ratio: float, otherwise: float, says: str, says_not: str = "") -> Clue:
    """Holds when a flag is set."""
    return above(quantity, 0.5, ratio, otherwise, says, says_not)


def says_one_of(
    quantity: Quantity, words: tuple[str, ...], ratio: float, otherwise: float, says: str, not_: str = ""
) -> Clue:
    """Holds when a stated word contains one of these."""

    def holds(evidence: Evidence) -> bool | None:
        return any(w in str(f.value).lower() for f in evidence.all(quantity) for w in words)

    return Clue((quantity,), holds, ratio, otherwise, says, not_)


def over(
    top: Quantity, bottom: Quantity, limit: float, ratio: float, otherwise: float, says: str, says_not: str = ""
) -> Clue:
    """Holds when one quantity is more than `limit` times another."""

    def holds(evidence: Evidence) -> bool | None:
        a, b = evidence.value(top), evidence.value(bottom)
        return a > limit * b if a == a and b == b else None

    return Clue((top, bottom), holds, ratio, otherwise, says, says_not)


def grew(quantity: Quantity, limit: float, ratio: float, otherwise: float, says: str, says_not: str = "") -> Clue:
    """Holds when the quantity is more than `limit` times what it was before."""

    def holds(evidence: Evidence) -> bool | None:
        now = next((f.number for f in evidence.all(quantity) if f.scope.run is None), float("nan"))
        then = evidence.value(quantity, run="before")
        return now > limit * then if now == now and then == then and then else None

    return Clue((quantity,), holds, ratio, otherwise, says, says_not)
