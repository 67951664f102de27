"""Messages that are only known: which program prints them, how loudly, since which release. Nobody has judged their weight.

`known/*.tsv` hold a distinctive piece of each message. Only loud lines without a signature are looked up, so no automaton is
needed: every piece is found by its first letters.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from stallwise.meaning.tables import tables_in

SHORTEST = 14  # letters of a piece: shorter ones say nothing


class Known(NamedTuple):
    """A message of a program."""

    piece: str
    level: str
    component: str
    source: str


def known_message(text: str) -> Known | None:
    """The longest known piece that stands in this line."""
    lowered = text.lower()
    found: Known | None = None
    for at in range(len(lowered) - SHORTEST + 1):
        for known in by_start().get(lowered[at : at + SHORTEST], ()):
            if (found is None or len(known.piece) > len(found.piece)) and lowered.startswith(known.piece, at):
                found = known
    return found


@cache
def by_start() -> dict[str, list[Known]]:
    """Every piece once, of the first book that has it, by its first letters."""
    starts: dict[str, list[Known]] = {}
    seen: set[str] = set()
    for _, text in tables_in("known", ".tsv"):
        head, *rows = text.splitlines()
        component, source = head.removeprefix("# ").split("\t")[:2]
        for piece, level, place, releases in (row.split("\t") for row in rows):
            if piece not in seen:
                seen.add(piece)
                known = Known(piece, level, component, f"{source} {place} {releases}")
                starts.setdefault(piece[:SHORTEST], []).append(known)
    return starts
