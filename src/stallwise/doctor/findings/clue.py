"""A piece of evidence that moves a hypothesis: a test, and a word for how its author thinks that it tells.

Nobody types how much likelier an outcome is under the cause: that is counted from cases, clue by clue, and a clue that few
cases decide borrows from the others of its word (`bench/fit_recognise.py`). What follows from arithmetic or from what the cause *is*
(`required`, `forbids`) needs no cases, and no number of them outweighs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from stallwise.evidence.catalog import stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.quantity import Quantity

# decisive: hardly ever seen without the cause; strong: seldom; fair: some other causes show it too; hint: many do.
# "needed": the cause can hardly be without it. "when seen": its absence says nothing, for the cause is often there without it, or
# nobody would have noted that it is not. against: seldom seen where the cause is at work.
# By definition or arithmetic there is no such cause without what is required, nor with what it forbids.
Strength = Literal[
    "decisive, needed", "decisive", "decisive when seen",
    "strong, needed", "strong", "strong when seen",
    "fair, needed", "fair", "fair when seen",
    "hint, needed", "hint", "hint when seen",
    "against", "required", "forbids",
]  # fmt: skip
AGAINST_CAUSE: tuple[Strength, ...] = ("against", "forbids")
WHEN_SEEN = " when seen"
NEEDED = "needed"
UNCHANGED = ("nothing", "none", "no ")  # how people say that the code is the same


@dataclass(frozen=True, slots=True)
class Clue:
    """What to look at, when it holds, and what to say of it."""

    reads: tuple[Quantity, ...]
    holds: Callable[[Evidence], bool | None]  # None: the evidence does not tell
    strength: Strength
    says: str  # the sentence for the report when it holds, and the clue's name in the counts
    says_not: str = ""  # and when it does not

    def outcome(self, evidence: Evidence) -> bool | None:
        """Whether it holds; None when unknown."""
        known = all(evidence.all(q) or evidence.series(q) for q in self.reads)
        return self.holds(evidence) if known else None

    def rules_out(self, held: bool) -> bool:
        """Whether by definition this outcome leaves no room for the cause."""
        return self.strength == ("forbids" if held else "required")

    def sentence(self, held: bool) -> str:
        """For the report."""
        return self.says if held else self.says_not or f"not so: {self.says}"


def above(quantity: Quantity, limit: float, strength: Strength, says: str, says_not: str = "") -> Clue:
    """Holds when the largest value of the quantity exceeds the limit."""

    def holds(evidence: Evidence) -> bool | None:
        numbers = [f.number for f in evidence.all(quantity) if f.scope.run != "before"]
        return max(numbers) > limit if numbers else None

    return Clue((quantity,), holds, strength, says, says_not)


def below(quantity: Quantity, limit: float, strength: Strength, says: str, says_not: str = "") -> Clue:
    """Holds when the smallest value of the quantity is under the limit."""

    def holds(evidence: Evidence) -> bool | None:
        numbers = [f.number for f in evidence.all(quantity) if f.scope.run != "before"]
        return min(numbers) < limit if numbers else None

    return Clue((quantity,), holds, strength, says, says_not)


def yes(quantity: Quantity, strength: Strength, says: str, says_not: str = "") -> Clue:
    """Holds when a flag is set."""
    return above(quantity, 0.5, strength, says, says_not)


def says_one_of(quantity: Quantity, words: tuple[str, ...], strength: Strength, says: str, says_not: str = "") -> Clue:
    """Holds when a stated word contains one of these."""

    def holds(evidence: Evidence) -> bool | None:
        return any(w in str(f.value).lower() for f in evidence.all(quantity) for w in words)

    return Clue((quantity,), holds, strength, says, says_not)


def unchanged() -> Clue:
    """Somebody says that nothing in the code changed: what then became slow is the machine's."""
    return says_one_of(stated.CHANGED, UNCHANGED, "hint when seen", "nothing in the code changed")


def over(top: Quantity, bottom: Quantity, limit: float, strength: Strength, says: str, says_not: str = "") -> Clue:
    """Holds when one quantity is more than `limit` times another."""

    def holds(evidence: Evidence) -> bool | None:
        a, b = evidence.value(top), evidence.value(bottom)
        return a > limit * b if a == a and b == b else None

    return Clue((top, bottom), holds, strength, says, says_not)


def grew(quantity: Quantity, limit: float, strength: Strength, says: str, says_not: str = "") -> Clue:
    """Holds when the quantity is more than `limit` times what it was before."""

    def holds(evidence: Evidence) -> bool | None:
        now = next((f.number for f in evidence.all(quantity) if f.scope.run is None), float("nan"))
        then = evidence.value(quantity, run="before")
        return now > limit * then if now == now and then == then and then else None

    return Clue((quantity,), holds, strength, says, says_not)
