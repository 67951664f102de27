"""Whether a layout fits, as far as predictions of memory can be trusted: fits, may fit, does not fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import exp

from stallwise.physics.costs.fitted import table
from stallwise.physics.costs.spread import NINETY
from stallwise.physics.specs.recipe import Recipe

FITS, MAY_FIT, DOES_NOT_FIT = "fits", "may fit", "does not fit"


@dataclass(frozen=True)
class Room:
    """A card's memory beside a prediction whose 90% interval reaches `half_width_ratio` either way."""

    card_bytes: float
    half_width_ratio: float

    def word(self, needed_bytes: float) -> str:
        """By the interval's ends: the upper one inside the card, or the lower one."""
        if needed_bytes * self.half_width_ratio <= self.card_bytes:
            return FITS
        return MAY_FIT if needed_bytes / self.half_width_ratio <= self.card_bytes else DOES_NOT_FIT


@cache
def memory_half_width(adapters: bool) -> float:
    """Of the 90% interval, from publishers that no table here was made of."""
    sigma = table()["memory"]["adapters" if adapters else "full"]
    return exp(NINETY * float(sigma))


def room_of(card_bytes: float, recipe: Recipe) -> Room:
    """The room a job of this kind has on a card."""
    return Room(card_bytes, memory_half_width(recipe.lora_rank > 0))
