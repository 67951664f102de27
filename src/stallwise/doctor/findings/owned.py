"""The part of a step that a cause owns: who timed that part has shown the cause, whatever else is known."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.evidence.ledger import Category
from stallwise.evidence.quantity import Quantity


@dataclass(frozen=True, slots=True)
class Owned:
    """Where the cause's time shows, and how often it was the cause where much time showed there."""

    category: Category
    parts: tuple[Quantity, ...]  # seconds of a step, by whichever name they were timed
    right: int  # cases (H200 runs with a measured fix, public incidents) with a tenth of the step there that were this cause
    of: int  # all cases with as much there
    shares: tuple[Quantity, ...] = ()  # the same as a part of the step
    bursts: tuple[Quantity, ...] = ()  # of the shares: what falls into a few late steps, which another cause owns
    whole_category: bool = True  # False: only the named parts are its own, not all that the account holds

    @property
    def confidence(self) -> float:
        """The mean of what the counts leave open, before which nothing was known."""
        return (self.right + 1) / (self.of + 2)
