"""Numbers of many lines that differ in digits alone, read as columns: the digits are found and added up for all lines at once.

Sums of at most fifteen digits over a power of ten are exact, so that every number is the one that `float` gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from stallwise.late import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


TOKEN = re.compile(r"\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?")  # a number, its sign left to whoever knows what stands before it
_PARTS = re.compile(rb"(\d[\d,]*)\.?(\d*)(?:[eE]([-+]?)(\d+))?")
_RUN = re.compile(rb"\d+")
FEW_LINES = 24  # below, a loop is faster
BLOCK_LINES = 1 << 15  # read at once: memory stays bounded
EXACT_DIGITS = 15
EXACT_POWER = 22

Column: TypeAlias = "NDArray[np.float64]"
_Places: TypeAlias = "NDArray[np.int64]"


class _Number(NamedTuple):
    """Which runs of digits of a line make up one number."""

    whole: range
    fraction: int | None
    exponent: int | None
    small: bool  # the exponent is negative


def number_columns(lines: Sequence[str], slots: Sequence[int]) -> Column | None:
    """One row a line, one column for each wanted number of the first line; None where a line has another count of numbers."""
    if len(lines) <= BLOCK_LINES:
        return Numbers(lines).columns(slots)
    blocks = [lines[at : at + BLOCK_LINES] for at in range(0, len(lines), BLOCK_LINES)]
    found = [Numbers(block).like(lines[0], slots) for block in blocks]
    whole = [block for block in found if block is not None]
    return np.concatenate(whole) if len(whole) == len(found) else None


def _one_by_one(lines: Sequence[str], slots: Sequence[int], count: int) -> Column | None:
    if max(slots, default=-1) >= count:
        return None
    rows = np.empty((len(lines), len(slots)))
    for at, line in enumerate(lines):
        written = TOKEN.findall(line)
        if len(written) != count:
            return None
        try:
            rows[at] = [float(written[slot].replace(",", "")) for slot in slots]
        except ValueError:  # "1.2.3" looks like one
            return None
    return rows


class Numbers:
    """The numbers of lines that differ in digits alone: whatever is asked of them, their digits are found once."""

    __slots__ = ("_digits", "_shape", "lines")

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._digits: tuple[_Digits, _Digits] | None = None
        self._shape: tuple[int, list[_Number], list[int]] | None = None

    def columns(self, slots: Sequence[int]) -> Column | None:
        """As `number_columns`."""
        if len(self.lines) < FEW_LINES:
            return _one_by_one(self.lines, slots, len(TOKEN.findall(self.lines[0])))
        return self.like(self.lines[0], slots)

    def like(self, sample: str, slots: Sequence[int]) -> Column | None:
        """The numbers of lines like this one, which is the same in every call."""
        if self._digits is None or self._shape is None:
            self._digits, self._shape = (_Digits(self.lines), _Digits([sample])), _numbers(sample)
        (own, more), (count, numbers, runs), lines = self._digits, self._shape, self.lines
        if max(slots, default=-1) >= min(count, len(numbers)):
            return None
        rows = np.empty((len(lines), len(slots)))
        like = np.zeros(len(lines), dtype=bool)
        if len(own.counts) == len(lines) and count == len(
            TOKEN.findall(sample)
        ):  # digits of other scripts are numbers, too
            wanted = [numbers[slot] for slot in slots]
            used = sorted({run for n in wanted for run in _runs_of(n)})
            like = own.counts == len(runs)
            if used:
                like[like] = (own.bare_places(like, used) == more.bare_places(more.counts > 0, used)).all(axis=1)
            for column, number in enumerate(wanted):
                values, exact = own.values(like, number)
                rows[like, column] = values
                like[like] = exact  # the others are read as written
        if not like.all():
            others = np.flatnonzero(~like)
            read = _one_by_one([lines[int(at)] for at in others], slots, len(TOKEN.findall(sample)))
            if read is None:
                return None
            rows[others] = read
        return rows


def _numbers(sample: str) -> tuple[int, list[_Number], list[int]]:
    """How many numbers a line holds, which runs of digits they are, and where these start."""
    data = sample.encode("utf-8", "replace")
    runs = [m.start() for m in _RUN.finditer(data)]
    index = {start: n for n, start in enumerate(runs)}
    found = []
    for match in _PARTS.finditer(data):
        first = index[match.start()]
        whole = range(first, first + len(_RUN.findall(match[1])))
        fraction = index[match.start(2)] if match[2] else None
        exponent = index[match.start(4)] if match[4] else None
        found.append(_Number(whole, fraction, exponent, match[3] == b"-"))
    return len(found), found, runs


def _runs_of(number: _Number) -> Iterator[int]:
    yield from number.whole
    yield from (run for run in (number.fraction, number.exponent) if run is not None)


class _Digits:
    """Where runs of digits start and end in these lines, and how many each line has."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.data = np.frombuffer("\n".join(("", *lines, "")).encode("utf-8", "replace"), dtype=np.uint8)
        digit = (self.data - np.uint8(48)) < 10
        edges = np.flatnonzero(digit[1:] != digit[:-1]) + 1
        self.starts, self.ends = edges[0::2], edges[1::2]
        self.feeds = np.flatnonzero(self.data == 10)
        self.first = np.searchsorted(self.starts, self.feeds)
        self.counts = np.diff(self.first)
        self.before = np.concatenate([[0], np.cumsum(self.ends - self.starts)])  # digits before each run

    def bare_places(self, rows: NDArray[np.bool_], runs: list[int]) -> _Places:
        """Where these runs would stand in lines without digits."""
        first = self.first[:-1][rows][:, None]
        run = first + np.array(runs, dtype=np.int64)
        inside: _Places = self.starts[run] - self.feeds[:-1][rows][:, None] - (self.before[run] - self.before[first])
        return inside

    def values(self, rows: NDArray[np.bool_], number: _Number) -> tuple[Column, NDArray[np.bool_]]:
        """One number of each of these rows, and whether it is exact."""
        first = self.first[:-1][rows]
        total, digits = np.zeros(len(first)), np.zeros(len(first), dtype=np.int64)
        for run in (*number.whole, *([number.fraction] if number.fraction is not None else [])):
            more, length = self._sum(first + run)
            total, digits = total * _powers()[np.minimum(length, EXACT_POWER)] + more, digits + length
        power = np.zeros(len(first), dtype=np.int64)
        exact = digits <= EXACT_DIGITS
        if number.fraction is not None:
            power -= self.ends[first + number.fraction] - self.starts[first + number.fraction]
        if number.exponent is not None:
            stated, length = self._sum(first + number.exponent)
            power += (-1 if number.small else 1) * stated.astype(np.int64)
            exact &= length < 4
        exact &= np.abs(power) <= EXACT_POWER
        scale = _powers()[np.minimum(np.abs(power), EXACT_POWER)]
        return np.where(power < 0, total / scale, total * scale), exact

    def _sum(self, run: _Places) -> tuple[Column, _Places]:
        """What these runs of digits add up to, and how long each is."""
        ends, length = self.ends[run], self.ends[run] - self.starts[run]
        total = np.zeros(len(run))
        for place in range(min(int(length.max(initial=0)), EXACT_DIGITS)):
            digit = self.data[np.maximum(ends - 1 - place, 0)] - np.uint8(48)
            total += np.where(length > place, digit * _powers()[place], 0.0)
        return total, length


@cache
def _powers() -> Column:
    """Of ten, each exact."""
    return np.array([10.0**n for n in range(EXACT_POWER + 1)])
