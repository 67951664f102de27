"""Lines that a terminal, an editor or a mail broke at its width, in one again."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stallwise.readers.shapes.aligned import has_gaps
from stallwise.readers.shapes.lines import Peeler

NARROWEST, WIDEST = 70, 132  # columns at which lines are broken
MOST_BYTES = 1 << 18  # people paste pages
LONGEST_WORD = 24  # longer ones are paths and labels
LEAST_SEEN = 2  # lines that go on in the next one beyond doubt
_ENDS = tuple(".:;!?,|>}])")
_WORD = re.compile(r"[A-Za-z_]+|\d+")


def unfolded(lines: Sequence[str]) -> list[str] | None:
    """Broken lines whole, empty ones in the place of their rests; None where the lines are as their program wrote them.

    A rest stands below a line that had no room for its first word, and begins as no line does that stands below one with room.
    """
    width = max(map(len, lines), default=0)
    if not NARROWEST <= width <= WIDEST:
        return None
    full = [at for at in range(1, len(lines)) if _is_full(lines[at - 1], lines[at], width)]
    starts = {_start(line) for line in (lines[at] for at in {*range(len(lines))}.difference(full))}
    peeler = Peeler({})
    rests = [at for at in full if _start(lines[at]) not in starts and not peeler.peel(lines[at])[1]]
    if sum(lines[at][0].islower() and not lines[at - 1].endswith(_ENDS) for at in rests) < LEAST_SEEN:
        return None
    told, first = list(lines), 0
    for at in rests:
        first = at - 1 if told[at - 1] else first
        told[first], told[at] = f"{told[first]} {lines[at]}", ""
    return told


def _is_full(line: str, following: str, width: int) -> bool:
    """No room was left for the next word, and neither line is laid out."""
    word = following.split(None, 1)[0] if following[:1].isalnum() else ""
    if not 0 < len(word) <= LONGEST_WORD or len(line) + 1 + len(word) <= width:
        return False
    return not has_gaps(line) and not has_gaps(following)


def _start(line: str) -> str:
    """The word a line begins with; all numbers are one."""
    found = _WORD.match(line)
    return "0" if found is None or found[0][0].isdigit() else found[0]
