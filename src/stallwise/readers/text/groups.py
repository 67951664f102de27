"""Groups of words that say one thing together, in whatever order and with whatever between them.

A line of groups is said by a text when a word of every group stands in it, at word borders, and no negation right before.
"a|b" are alternatives, "word*" any ending, "utili?ation" any one letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from stallwise.readers.text.words import turn

_BEHIND = 48  # letters behind a word in which its answer stands
_OPEN = re.compile("[*? ]")  # from here on a word of a group is not spelled out


class Group(NamedTuple):
    """Alternatives as they are written, and what each begins with: most texts have none of those and need no expression."""

    words: str
    begins: tuple[str, ...]

    def may_stand_in(self, text: str) -> bool:
        """Whether a plain text has a word of this group."""
        return any(b in text for b in self.begins) and pattern_of(self.words).search(text) is not None


class Line(NamedTuple):
    """Groups that must all be said; `ordered` where each must stand behind the one before it."""

    groups: tuple[Group, ...]
    ordered: bool = False


def line_of(groups: Sequence[str], ordered: bool = False) -> Line:
    """From the words of a table."""
    return Line(tuple(Group(g, tuple(_OPEN.split(w)[0] for w in g.split("|"))) for g in groups), ordered)


@cache
def pattern_of(group: str) -> re.Pattern[str]:
    """The alternatives of one group."""
    words = [
        re.escape(w).replace(r"\*", r"\w*").replace(r"\?", r"\w?").replace(r"\ ", r"[ _-]") for w in group.split("|")
    ]
    return re.compile(r"(?<![\w])(?:" + "|".join(words) + r")(?![\w])")


def plain(text: str) -> str:
    """As the groups are looked for: small letters, one space between words."""
    return " ".join(text.lower().replace("\u2019", "'").split())


def clauses(text: str) -> list[str]:
    """The parts of a plain text that each say something of their own."""
    return turn("clause").split(text)


def sayable(lines: Iterable[Line], text: str) -> list[Line]:
    """The lines that a clause of a plain text may say: all their groups stand in it somewhere. Most texts have none."""
    return [line for line in lines if all(group.may_stand_in(text) for group in line.groups)]


def says(line: Line, text: str) -> bool:
    """Whether a plain text says every group of the line."""
    start = 0
    for group in line.groups:
        found = next(
            (m for m in pattern_of(group.words).finditer(text) if m.start() >= start and affirmed(m, text)), None
        )
        if found is None:
            return False
        start = found.end() if line.ordered else 0
    return True


def affirmed(match: re.Match[str], text: str) -> bool:
    """Whether what was found is neither denied before it nor answered with no behind it."""
    before, behind = text[max(0, match.start() - 32) : match.start()], text[match.end() : match.end() + _BEHIND]
    denied = turn("negation").search(before) or turn("counted_none").search(before) or turn("answered_no").match(behind)
    return denied is None
