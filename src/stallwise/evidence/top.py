"""What took most, as people ask for it: one row a name, the longest first. A table of this kind may come from any reader or
measure; reports, JSON and notebooks show whatever there is."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from stallwise.evidence.fact import WHOLE, Scope, Source, Table

PREFIX = "top "
# In the order in which they are shown.
WHAT = ("kernels", "operators", "python lines", "copies", "collectives", "allocations")
MOST_ROWS = 40


def top_table(
    what: str,
    columns: dict[str, NDArray[Any]],
    source: Source,
    scope: Scope = WHOLE,
    *,
    unit: str = "",
    left_out: int = 0,
) -> Table:
    """`unit` is what times and counts are told by: a step, an iteration; `left_out` counts the names below the last row."""
    if what not in WHAT:
        raise ValueError(f"there is no table of {what}")
    return Table(PREFIX + what, columns, source, scope, {"unit": unit, "left_out": left_out})
