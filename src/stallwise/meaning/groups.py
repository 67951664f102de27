"""Groups of words that say one thing together, in whatever order and with whatever between them.

A line of groups is said by a text when a word of every group stands in it, at word borders, and no negation right before.
"a|b" are alternatives, "word*" any ending, "utili?ation" any one letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_NEGATION = re.compile(
    r"\b(?:no|not|without|never|isn't|isnt|don't|doesn't|didn't|zero|nor|avoids?|instead of|rather than"
    r"|refutes?|rules? out|ruled out|against|whether)\b(?:\s+\w+){0,2}\s*$"
)
# A point inside "loss.item()" or "torch.save" joins; one before a space ends. "Thermal slowdown: not active" is one clause: the
# answer belongs to what is asked.
_CLAUSE = re.compile(
    r"[;,:](?!\d)(?<!:(?=\s{0,3}(?:no|none|not|false|off|never)\b))|\.(?=\s|$)|\b(?:but|while|although|though|yet|however|whereas)\b"
)
# "Xid: none", "ECC uncorrectable: 0"; but "ECC error on GPU: 0" tells which one.
_WHICH = r"(?:at|on|in|of|for|gpus?|ranks?|nodes?|hosts?|cards?|devices?|steps?|ports?|links?|index|id|pid|code)\b"
_ANSWERED_NO = re.compile(
    rf"^(?: (?!{_WHICH})[a-z-]+){{0,2}}\s*(?:[=:]|\bis|\bwas|\bare|\bwere)\s*(?:no|none|false|0(?![.,x]?[0-9a-f])|off|never|not)\b"
)
_COUNTED_NONE = re.compile(r"(?:^|[;,(.] *)0(?: [a-z-]+){0,2} *$")  # "0 uncorrectable ECC errors", not "GPU 0 hangs"
_BEHIND = 48  # letters behind a word in which its answer stands


class Line(NamedTuple):
    """Groups that must all be said; `ordered` where each must stand behind the one before it."""

    groups: tuple[re.Pattern[str], ...]
    ordered: bool = False


def line_of(groups: Sequence[str], ordered: bool = False) -> Line:
    """From the words of a table."""
    return Line(tuple(pattern_of(group) for group in groups), ordered)


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
    return _CLAUSE.split(text)


def sayable(lines: Iterable[Line], text: str) -> list[Line]:
    """The lines that a clause of a plain text may say: all their groups stand in it somewhere. Most texts have none."""
    return [x for x in lines if x.groups[0].search(text) and all(p.search(text) for p in x.groups[1:])]


def says(line: Line, text: str) -> bool:
    """Whether a plain text says every group of the line."""
    start = 0
    for pattern in line.groups:
        found = next((m for m in pattern.finditer(text) if m.start() >= start and _affirmed(m, text)), None)
        if found is None:
            return False
        start = found.end() if line.ordered else 0
    return True


def _affirmed(match: re.Match[str], text: str) -> bool:
    before, behind = text[max(0, match.start() - 32) : match.start()], text[match.end() : match.end() + _BEHIND]
    denied = _NEGATION.search(before) or _COUNTED_NONE.search(before) or _ANSWERED_NO.match(behind)
    return denied is None
