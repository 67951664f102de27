"""What a player must know of each cause: its name in plain words, its remedy, what refutes it, its trap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from stallwise.doctor.catalogue import families, table_of


@dataclass(frozen=True, slots=True)
class CauseProfile:
    """One cause as the drill shows it (`[drill]` of its cause.toml)."""

    cause: str
    says: str
    words: tuple[str, ...]
    fix: str
    refuted: str
    trap: str
    near: frozenset[str]


@cache
def cause_profiles() -> dict[str, CauseProfile]:
    """All of them; `near` holds both ways."""
    tables = {cause: table_of(cause) for cause in families()}
    near = {cause: set(table["drill"]["near"]) for cause, table in tables.items()}
    for cause, others in list(near.items()):
        for other in list(others):
            near[other].add(cause)
    return {
        cause: CauseProfile(
            cause, table["title"], tuple(row["words"]), row["fix"], row["refuted"], row["trap"], frozenset(near[cause])
        )
        for cause, table in tables.items()
        for row in [table["drill"]]
    }  # fmt: skip
