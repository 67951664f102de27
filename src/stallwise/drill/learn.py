"""The beginner's path: one mechanism at a time, easy to hard, each with its page, a question and an exact check."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from stallwise.drill.deck import LEVELS, Card, all_cards
from stallwise.drill.explain import Concept, concepts

PATH = "gpu:"  # cards that cover these questions make the path, in their order within a level


@dataclass(frozen=True, slots=True)
class Step:
    """A card, and the page that teaches what it asks."""

    card: Card
    concept: Concept | None

    @property
    def item(self) -> str:
        """Its name in the progress file."""
        return f"learn:{self.card.id}"

    def row(self) -> dict[str, str]:
        """As JSON lists it."""
        title = self.concept.title if self.concept else ""
        return {"card": self.card.id, "level": self.card.level, "mechanism": title}

    def page(self) -> str:
        """What is taught before it is asked: the mechanism's page, without the names of its cards."""
        if self.concept is None:
            return ""
        return "\n".join(line for line in self.concept.page().splitlines() if not line.startswith(("cards", "causes")))


@cache
def path() -> tuple[Step, ...]:
    """All steps, easy first."""
    taught = {card: concept for concept in concepts().values() for card in concept.cards}
    chosen = [c for c in all_cards() if _place(c) is not None]
    chosen.sort(key=lambda c: (LEVELS.index(c.level), _place(c)))
    return tuple(Step(c, taught.get(c.id)) for c in chosen)


def _place(card: Card) -> int | None:
    return min((int(k.removeprefix(PATH)) for k in card.covers if k.startswith(PATH)), default=None)


def next_step(done: Iterable[str]) -> tuple[int, Step] | None:
    """The first step whose item is not done, with its number."""
    known = set(done)
    return next(((n, s) for n, s in enumerate(path(), start=1) if s.item not in known), None)
