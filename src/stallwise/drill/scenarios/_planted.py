"""How a generator says which cause it plants."""

from __future__ import annotations

from collections.abc import Callable

from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import Plot

Author = Callable[[Rng], Plot]
PLANTED: dict[str, list[Author]] = {}


def planted(cause: str) -> Callable[[Author], Author]:
    """Marks a generator: from rng it makes a plot whose first cause is this one."""

    def keep(author: Author) -> Author:
        PLANTED.setdefault(cause, []).append(author)
        return author

    return keep
