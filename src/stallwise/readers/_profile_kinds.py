"""What the rows of a profile are for (patterns/profile_kinds.toml), and the seconds of each kind."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from stallwise.evidence.profile import Spent
from stallwise.readers._patterns import entries, patterns

_P = patterns("profile_kinds")
LEAST = 1e-3  # of the longest row: thousands of rows are shorter, and none of them is anybody's kind of work


@lru_cache(4096)
def kind_of(name: str) -> str:
    """ "data loading", "backward", ...; empty where its name says nothing."""
    kinds = entries("profile_kinds")
    return next((str(kinds[key]["says"]) for key in kinds if _P[key].search(name)), "")


LAUNCHES, MOVES = "launching kernels", "moving data to or from the device"


def launches_in(rows: Iterable[Spent]) -> float:
    """Kernels that the host issued: its launching calls, else the kernels that ran."""
    issued = ran = 0.0
    for row in rows:
        issued += row.calls if row.own_s > 0 and kind_of(row.name) == LAUNCHES else 0.0
        ran += row.calls if row.device_s > 0 and not row.own_s and not row.moves else 0.0
    return issued or ran


def seconds_by_kind(rows: Iterable[Spent]) -> dict[str, float]:
    """What they call included: of functions that call each other the outer one holds the others' time, so the longest name counts.

    Rows of one name add up.
    """
    by_name: dict[str, float] = {}
    for row in rows:
        by_name[row.name] = by_name.get(row.name, 0.0) + max(row.held_s, row.own_s)
    found: dict[str, float] = {}
    least = LEAST * max(by_name.values(), default=0.0)
    for name, seconds in by_name.items():
        if seconds >= least and (kind := kind_of(name)):
            found[kind] = max(found.get(kind, 0.0), seconds)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
