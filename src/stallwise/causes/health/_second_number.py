"""Which second number would refute a proof, and is it there? What the proofs of health ask alike.

A proof that takes the first value it finds calls a run healthy that was healthy once. So every proof looks at all values of its
quantity, takes the worst, and refuses where the same thing has two values, or where a number of the same kind stands beside it that
nobody could name: it may be the one that counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stallwise.evidence.catalog import change
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact
from stallwise.evidence.quantity import Quantity

SAME = 0.05  # relative: two measurements of the same run differ by this much anyway


def of_now(evidence: Evidence, quantity: Quantity) -> list[Fact]:
    """Every value of the run in question; those of an earlier run, or of what was hoped for, are not its own."""
    return [
        f
        for f in evidence.all(quantity)
        if f.scope.run is None and not isinstance(f.value, str) and f.number == f.number
    ]


def two_values(facts: Sequence[Fact]) -> str:
    """ "48% and 22%" where one thing is told twice and differently; empty where all values of each part agree."""
    parts: dict[tuple[object, ...], list[Fact]] = {}
    for fact in facts:
        parts.setdefault(tuple(fact.scope.to_dict().items()), []).append(fact)
    for same in parts.values():
        low, high = (pick(same, key=lambda f: f.number) for pick in (min, max))
        if high.number - low.number > SAME * abs(high.number):
            return f"{same[0]} and {same[-1]}" if same[0].number != same[-1].number else f"{low} and {high}"
    return ""


def lowest(facts: Iterable[Fact]) -> Fact | None:
    """The worst of something of which more is better."""
    return min(facts, key=lambda f: f.number, default=None)


def highest(facts: Iterable[Fact]) -> Fact | None:
    """The worst of something of which less is better."""
    return max(facts, key=lambda f: f.number, default=None)


def unnamed_shares(evidence: Evidence, file: str) -> list[float]:
    """Parts of a whole that the same text tells and that have no name here."""
    numbers = [n for unread in evidence.unread if unread.file == file for n in unread.numbers_lost]
    return [
        value / 100 if unit == "%" else value for value, unit in numbers if unit == "%" or (not unit and 0 < value < 1)
    ]


def got_worse(evidence: Evidence) -> Fact | None:
    """The quantity that is worst against an earlier run, where one is worse by more than runs differ."""
    worst = highest(f for f in evidence.all(change.WORSE_RATIO) if f.number == f.number)
    return worst if worst is not None and worst.number > 1.0 + SAME else None
