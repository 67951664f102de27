"""Lines grouped by what is left of them without their digits: a program prints few such skeletons, however long its log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain, count, pairwise

from stallwise.evidence.number_columns import BLOCK_LINES, Column, Numbers, number_columns
from stallwise.late import np

LONGEST = 4000  # characters of a line that are looked at: longer ones are dumps of data
_DIGITS = b"0123456789"
_ADDRESS = re.compile(rb"0x[\da-fA-F]+")  # digits of another kind
_ID = re.compile(rb"\b(?=[a-f]{0,40}\d)[\da-f]{6,}\b")
MANY = 0.1  # skeletons a line, from which addresses or ids are looked for
FEW = 1000  # lines, below which it does not matter
REMEMBERED = 8  # skeletons whose digits are kept: several readers ask for numbers of the same lines


# Escapes, counts, names of groups and classes: in none of them stands a digit that a line must hold.
_PIECES = re.compile(
    r"\\x[\da-fA-F]{2}|\\.|\{[\d,]+\}|\(\?P[<=]\w+[>)]|(?P<set>\[\^?\]?(?:\\.|[^\]\\]){0,100}\])|(?P<digits>\d+)", re.S
)
_CERTAIN = re.compile(r"(?<!\\)\d")


@cache
def loosened(pattern: str) -> str:
    """The expression with any digits where it wants certain ones: if this does not fit a line, nothing of its skeleton fits."""
    loose = _PIECES.sub(_any_digit, pattern)
    refuses = loose != pattern and ("(?!" in pattern or "(?<!" in pattern)
    return "" if refuses else loose  # what forbids one digit must not forbid them all


def _any_digit(piece: re.Match[str]) -> str:
    if piece["digits"]:
        return r"\d{1,20}"
    if piece["set"] and _CERTAIN.search(piece["set"].replace("0-9", "")):
        return r"[\s\S]" if piece["set"][1] == "^" else r"[\d" + piece["set"][1:]
    return piece[0]


def asks_for_digits(pattern: str) -> bool:
    """True where an expression wants certain digits: then lines of one skeleton may differ in whether it fits."""
    return loosened(pattern) != pattern


@dataclass(frozen=True)
class Skeletons:
    """Which line has which skeleton. Lines of one skeleton hold the same words; only their numbers differ."""

    lines: Sequence[str]
    keys: list[str]  # each skeleton once, in the order of their first lines
    of: list[int]  # the skeleton of each line
    firsts: list[int]  # the first line of each skeleton
    _members: dict[int, list[int]] = field(default_factory=dict)
    _numbers: dict[int, Numbers] = field(default_factory=dict)

    @cached_property
    def lowered(self) -> bytes:
        """All skeletons in small letters, a line each."""
        return "\n".join(self.keys).encode("utf-8", "replace").lower()

    def members(self, skeleton: int) -> list[int]:
        """The lines of a skeleton, in order."""
        if not self._members:
            own = np.array(self.of, dtype=np.int64)
            order = np.argsort(own, kind="stable").tolist()
            ends = np.cumsum(np.bincount(own, minlength=len(self.keys))).tolist()
            self._members.update((s, order[a:b]) for s, (a, b) in enumerate(pairwise([0, *ends])))
        return self._members[skeleton]

    def lines_of(self, skeletons: Iterable[int]) -> list[int]:
        """All lines of these skeletons, in order."""
        return sorted(chain.from_iterable(self.members(s) for s in set(skeletons)))

    def where(self, holds: Callable[[str], object]) -> frozenset[int]:
        """Skeletons whose first line passes a test that does not depend on which digits stand there."""
        return frozenset(s for s, line in enumerate(self.firsts) if holds(self.lines[line][:LONGEST]))

    def columns(self, skeleton: int, slots: Sequence[int]) -> Column | None:
        """Wanted numbers of all lines of a skeleton, a row a line; None where a line has more or fewer than the first."""
        if (known := self._numbers.get(skeleton)) is not None:
            return known.columns(slots)
        lines = [self.lines[m][:LONGEST] for m in self.members(skeleton)]
        if len(lines) > BLOCK_LINES:
            return number_columns(lines, slots)
        if len(self._numbers) >= REMEMBERED:
            del self._numbers[next(iter(self._numbers))]  # the oldest
        self._numbers[skeleton] = Numbers(lines)
        return self._numbers[skeleton].columns(slots)


def bare_lines(data: bytes) -> list[bytes]:
    """Each line without its digits, and without addresses and ids where those make most lines unlike."""
    bare = data.translate(None, _DIGITS).split(b"\n")
    for pattern in (_ADDRESS, _ID):
        if len(bare) > FEW and len(set(bare)) > MANY * len(bare):
            data = pattern.sub(b"", data)
            bare = data.translate(None, _DIGITS).split(b"\n")
    return bare


def skeletons_of(lines: Sequence[str]) -> Skeletons:
    """One pass over the bytes."""
    short = lines if max(map(len, lines), default=0) <= LONGEST else [line[:LONGEST] for line in lines]
    data = "\n".join(short).encode("utf-8", "replace")
    bare = bare_lines(data) if short else []
    if len(bare) != len(short):  # a line that holds a line feed of its own
        bare = [line.encode("utf-8", "replace").translate(None, _DIGITS) for line in short]
    numbers = dict(zip(dict.fromkeys(bare), count(), strict=False))  # in the order of their first lines
    first = dict(zip(reversed(bare), range(len(bare) - 1, -1, -1), strict=True))
    of = list(map(numbers.__getitem__, bare))
    return Skeletons(lines, [key.decode("utf-8", "replace") for key in numbers], of, [first[key] for key in numbers])
