"""What took most, as people ask for it: one row a name, the longest first. A table of this kind may come from any reader or
measure; reports, JSON and notebooks show whatever there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stallwise.evidence.fact import WHOLE, Scope, Source, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    of_whole: float = 0.0,
) -> Table:
    """`unit` is what times and counts are told by: a step, an iteration; `left_out` counts the names below the last row.

    `of_whole` is the time of all rows, shown or not, over that whole. Work of several streams or threads overlaps: where it is longer
    than the whole, shares are of all that work, since no parts are more than what they are parts of.
    """
    if what not in WHAT:
        raise ValueError(f"there is no table of {what}")
    overlaps = of_whole > 1.0
    if overlaps:
        columns = {**columns, "share": columns["share"] / of_whole}
    meta = {"unit": unit, "left_out": left_out, "of": "all this time, some of it at once" if overlaps else ""}
    return Table(PREFIX + what, columns, source, scope, meta)
