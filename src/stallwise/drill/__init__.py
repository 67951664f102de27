"""Practice: incidents, cards, numbers worked out by the cost model, and progress that remembers what you forget."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files


@cache
def rows(table: str) -> tuple[dict[str, str], ...]:
    """The lines of a table of this package; those that begin with # are remarks."""
    text = (files("stallwise.drill") / table).read_text(encoding="utf-8")
    return tuple(
        csv.DictReader((line for line in text.splitlines() if not line.startswith("#")), delimiter="\t", restval="")
    )
