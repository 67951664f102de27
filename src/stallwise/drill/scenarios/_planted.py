"""How a generator says which cause it plants."""

from __future__ import annotations

from collections.abc import Callable

from stallwise.drill.incident import Plot
from stallwise.drill.papers.dice import Dice

Author = Callable[[Dice], Plot]
PLANTED: dict[str, list[Author]] = {}


def planted(cause: str) -> Callable[[Author], Author]:
    """Marks a generator: from dice it makes a plot whose first cause is this one."""

    def keep(author: Author) -> Author:
        PLANTED.setdefault(cause, []).append(author)
        return author

    return keep
