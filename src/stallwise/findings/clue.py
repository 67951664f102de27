"""A piece of evidence that moves a hypothesis: a test, and how its author thinks it tells.

Nobody types how much likelier an outcome is under the cause. The author picks a word; the cases are counted, clue by clue,
and where a clue has few it borrows from the others of the same word (`knowledge/clues.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from stallwise.evidence.evidence import Evidence
from stallwise.evidence.quantity import Quantity

Tells = Literal["decisive", "strong", "fair", "hint", "needed", "against", "excludes"]
DECISIVE: Tells = "decisive"  # hardly ever seen without the cause
STRONG: Tells = "strong"  # seldom seen without it
FAIR: Tells = "fair"  # some other causes show it too
HINT: Tells = "hint"  # goes with the cause, and with many others
NEEDED: Tells = "needed"  # the cause can hardly be without it; others may show it too
AGAINST: Tells = "against"  # seldom seen where the cause is at work
EXCLUDES: Tells = "excludes"  # hardly ever seen where it is


@dataclass(frozen=True, slots=True)
class Clue:
    """What to look at, when it holds, and what to say of it."""

    reads: tuple[Quantity, ...]
    holds: Callable[[Evidence], bool | None]  # None: the evidence does not tell
    tells: Tells
    says: str  # the sentence for the report when it holds; also the clue's name in the counts
    says_not: str = ""  # and when it does not

    def outcome(self, evidence: Evidence) -> bool | None:
        """Whether it holds; None when nothing here tells."""
        if not all(evidence.all(q) or evidence.series(q) for q in self.reads):
            return None
        return self.holds(evidence)

    def sentence(self, held: bool) -> str:
        """For the report."""
        return self.says if held else self.says_not or f"not so: {self.says}"


def above(quantity: Quantity, limit: float, tells: Tells, says: str, says_not: str = "") -> Clue:
    """Holds when the largest value of the quantity exceeds the limit."""

    def holds(evidence: Evidence) -> bool | None:
        numbers = [f.number for f in evidence.all(quantity) if f.scope.run != "before"]
        return max(numbers) > limit if numbers else None

    return Clue((quantity,), holds, tells, says, says_not)


def below(quantity: Quantity, limit: float, tells: Tells, says: str, says_not: str = "") -> Clue:
    """Holds when the smallest value of the quantity is under the limit."""

    def holds(evidence: Evidence) -> bool | None:
        numbers = [f.number for f in evidence.all(quantity) if f.scope.run != "before"]
        return min(numbers) < limit if numbers else None

    return Clue((quantity,), holds, tells, says, says_not)


def yes(quantity: Quantity, tells: Tells, says: str, says_not: str = "") -> Clue:
    """Holds when a flag is set."""
    return above(quantity, 0.5, tells, says, says_not)


def says_one_of(quantity: Quantity, words: tuple[str, ...], tells: Tells, says: str, says_not: str = "") -> Clue:
    """Holds when a stated word contains one of these."""

    def holds(evidence: Evidence) -> bool | None:
        return any(w in str(f.value).lower() for f in evidence.all(quantity) for w in words)

    return Clue((quantity,), holds, tells, says, says_not)


def over(top: Quantity, bottom: Quantity, limit: float, tells: Tells, says: str, says_not: str = "") -> Clue:
    """Holds when one quantity is more than `limit` times another."""

    def holds(evidence: Evidence) -> bool | None:
        a, b = evidence.value(top), evidence.value(bottom)
        return a > limit * b if a == a and b == b else None

    return Clue((top, bottom), holds, tells, says, says_not)


def grew(quantity: Quantity, limit: float, tells: Tells, says: str, says_not: str = "") -> Clue:
    """Holds when the quantity is more than `limit` times what it was before."""

    def holds(evidence: Evidence) -> bool | None:
        now = next((f.number for f in evidence.all(quantity) if f.scope.run is None), float("nan"))
        then = evidence.value(quantity, run="before")
        return now > limit * then if now == now and then == then and then else None

    return Clue((quantity,), holds, tells, says, says_not)
