"""Lines of any log: the message, and a row of what stood in front of it (clock, level, node, rank, GPU, place).

The prefixes are data (prefixes.toml). Lines of one program look alike, so the prefixes found on one line are tried first on
the next that has the same shape.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.line import NAN, Line
from stallwise.evidence.number_columns import TOKEN
from stallwise.evidence.words import is_label
from stallwise.late import np
from stallwise.readers._patterns import document, patterns

if TYPE_CHECKING:
    from numpy.typing import NDArray

LONGEST = 20_000  # characters of a line that are kept: longer ones are dumps of data
LOOKED_AT = 240  # prefixes end before this
MOST_ENVELOPES = 4  # one around the other
ENDS = 64  # lines at each end of a long run
NOBODY = -1  # the rank of lines that name none
REMEMBERED = 4096  # shapes of prefixes: a log has a few dozen
_DAYS = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_MONTHS = {m: i + 1 for i, m in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())}
_P = patterns("lines")
_ANY_DIGIT = str.maketrans("123456789", "000000000")


@dataclass(frozen=True, slots=True)
class Prefix:
    """One thing that programs print before their message."""

    name: str
    pattern: re.Pattern[str]
    starts: str
    wrapper: bool
    sample: str


@cache
def prefixes() -> tuple[Prefix, ...]:
    """All of them, as the file orders them: the more telling first."""
    return tuple(
        Prefix(r["name"], re.compile(r["pattern"]), r["starts"], r.get("wrapper", False), r["sample"])
        for r in document("shapes/prefixes")["prefix"]
    )


@cache
def _starting(kind: str) -> tuple[Prefix, ...]:
    return tuple(p for p in prefixes() if kind in p.starts)


@cache
def _carrying(kind: str) -> tuple[Prefix, ...]:
    return tuple(p for p in _starting(kind) if p.wrapper)


def _kind(character: str) -> str:
    return "A" if character.isalpha() else "0" if character.isdigit() else character


@dataclass(slots=True)
class Peeler:
    """Takes prefixes off lines and remembers which fitted lines of the same shape."""

    known: dict[str | int, tuple[Prefix, ...]]

    def peel(self, text: str, skeleton: int | None = None) -> tuple[str, dict[str, str]]:
        """The message, and the fields of its prefixes; of a skeleton that was seen no others are looked for."""
        row: dict[str, str] = {}
        head = text[:LOOKED_AT]
        shape = head[:80].translate(_ANY_DIGIT) if skeleton is None else skeleton
        at, known, found = 0, self.known.get(shape), list[Prefix]()
        for prefix in known or ():
            match = prefix.pattern.match(head, _past_spaces(head, at))
            if match is None:
                break
            at = _take(match, row)
            found.append(prefix)
        if known is not None and skeleton is not None and len(found) == len(known):
            return text[at:], row
        while at < len(head):
            match, another = _next(head, _past_spaces(head, at))
            if match is None or match.end() == match.start():
                break
            at = _take(match, row)
            found.append(another)
        if len(self.known) < REMEMBERED:
            self.known[shape] = tuple(found)
        return text[at:], row


def uncarried(text: str) -> str:
    """A line without what containers, clusters and launchers put before it, for who asks neither when nor where."""
    for _ in range(MOST_ENVELOPES):
        match = next(filter(None, (p.pattern.match(text) for p in _carrying(_kind(text[:1])))), None)
        if match is None:
            break
        text = text[match.end() :]
    return text


def _past_spaces(head: str, at: int) -> int:
    """Where the next prefix may start; a line's own indent is none of it."""
    while at and at < len(head) and head[at] == " ":
        at += 1
    return at


def _next(head: str, at: int) -> tuple[re.Match[str], Prefix] | tuple[None, Prefix]:
    candidates = _starting(_kind(head[at : at + 1]))
    for prefix in candidates:
        match = prefix.pattern.match(head, at)
        if match is not None:
            return match, prefix
    return None, prefixes()[0]


def known_prefix(text: str) -> Prefix | None:
    """What of this book a text begins with."""
    match, prefix = _next(text, 0)
    return prefix if match is not None and match.end() else None


def _take(match: re.Match[str], row: dict[str, str]) -> int:
    for name, value in match.groupdict().items():
        if value is not None and (
            name not in row or name in ("level", "place")
        ):  # the innermost level is the program's
            row[name] = value
    return match.end()


def line_of(
    number: int, text: str, file: str, peeler: Peeler, rank: int | None = None, node: str | None = None,
    shape: int | None = None,
) -> Line:  # fmt: skip
    """One line with its row; rank and node stand in where the line names none."""
    message, row = peeler.peel(text, shape)
    if "rank" not in row and "ank" in message[:200] and (speaker := _P["speaker"].search(message[:200])) is not None:
        rank = int(speaker[1] or speaker[2])
    elif "task" in row and rank is None:
        rank = int(row["task"])
    if not row:
        return Line(number, message, file, rank=rank, node=node)
    level = row.get("level", "").lower()
    return Line(
        number,
        message,
        file,
        time_s=time_of(row["time"]) if "time" in row else NAN,
        boot_s=float(row["boot"]) if "boot" in row else NAN,
        level=document("shapes/prefixes")["levels"].get(level, level),
        rank=int(row["rank"]) if "rank" in row else rank,
        node=row.get("node", node),
        gpu=int(row["gpu"]) if "gpu" in row and not row["gpu"].startswith("-") else None,
        logger=row.get("logger", "").strip(": "),
        place=row.get("place", ""),
        pid=int(row["pid"]) if "pid" in row else None,
        group=row.get("group"),
    )


class Speakers:
    """The rank of each line, looked for once per skeleton: lines that differ in digits alone have it in the same place."""

    def __init__(self, artifact: Artifact) -> None:
        self.text, self.file = artifact.skeletons, artifact.name
        self.own, self.node, self.peeler = rank_of_file(artifact.name), node_of_file(artifact.name), Peeler({})
        self.ranks = cache(self._ranks)

    def line(self, at: int) -> Line:
        """One line with its whole row."""
        words = self.text.lines[at][:LONGEST]
        return line_of(at + 1, words, self.file, self.peeler, self.own, self.node, self.text.of[at])

    def _rank(self, at: int) -> int:
        rank = self.line(at).rank
        return NOBODY if rank is None else rank

    def _ranks(self, skeleton: int) -> NDArray[np.int64]:
        """Of all lines of a skeleton; NOBODY where neither a line nor its file names one."""
        members = self.text.members(skeleton)
        shown = [0, len(members) // 2, len(members) - 1]
        shown_ranks = [self._rank(members[at]) for at in shown]
        if all(rank == (NOBODY if self.own is None else self.own) for rank in shown_ranks):
            return np.full(len(members), shown_ranks[0], dtype=np.int64)
        numbers = enumerate(TOKEN.finditer(self.text.lines[members[0]][:LOOKED_AT]))
        for slot in (slot for slot, number in numbers if number[0].rstrip(",.") == str(shown_ranks[0])):
            column = self.text.columns(skeleton, [slot])
            if column is not None and column[shown, 0].tolist() == shown_ranks:
                return column[:, 0].astype(np.int64)
        return np.array([self._rank(at) for at in members], dtype=np.int64)

    def enough(self, skeletons: Iterable[int]) -> list[tuple[int, int]]:
        """Lines that tell how far each rank got, with it: all, but of a long run of one speaker the first and the last."""
        found: list[tuple[int, int]] = []
        for skeleton in skeletons:
            every = list(zip(self.text.members(skeleton), self.ranks(skeleton).tolist(), strict=True))
            alone = len(every) > 2 * ENDS and len({rank for _, rank in every}) == 1
            found += [*every[:ENDS], *every[-ENDS:]] if alone else every
        return sorted(found)

    def last_lines(self, end: int, skeletons: Iterable[int]) -> dict[int, int]:
        """The last line of each rank before `end`, among these skeletons."""
        last: dict[int, int] = {}
        for skeleton in skeletons:
            members = self.text.members(skeleton)
            with_ranks = zip(self.ranks(skeleton).tolist(), members[: bisect_left(members, end)], strict=False)
            for rank, at in dict(with_ranks).items():
                last[rank] = max(at, last.get(rank, at))
        return last


def time_of(stamp: str) -> float:
    """Seconds since New Year, or since midnight where the stamp has no date."""
    clock = _P["clock"].search(stamp)
    if clock is None:
        return NAN
    seconds = int(clock[1]) * 3600 + int(clock[2]) * 60 + float(clock[3].replace(",", "."))
    return _day_starts_s(stamp[: clock.start()]) + seconds


@lru_cache(maxsize=256)
def _day_starts_s(stamp: str) -> float:
    """Seconds from New Year to the day that a stamp names; none where it names no day, NaN where there is no such month."""
    date = _P["date"].search(stamp)
    if date is None:
        return 0.0
    month = _MONTHS.get(date["name"], 0) if date["name"] else int(date["month"] or date["month2"])
    day = int(date["day"] or date["day2"] or date["day3"])
    if not 1 <= month <= 12:
        return NAN
    return (_DAYS[month - 1] + day - 1) * 86400.0


def rank_of_file(name: str) -> int | None:
    """The rank a file name speaks of: rank1.log, nccl_trace_rank_7, torchelastic/attempt_0/3/stderr.log. Words typed are no name."""
    if is_label(name):
        return None
    path = PurePath(name.split("!")[-1])
    if match := _P["file_rank"].search(path.name):
        return int(match[1] or match[2])
    parts = path.parts
    if len(parts) >= 2 and parts[-2].isdecimal() and path.stem in ("stderr", "stdout"):
        return int(parts[-2])
    return None


def node_of_file(name: str) -> str | None:
    """The node a file name speaks of: node-03.log."""
    match = None if is_label(name) else _P["file_node"].search(PurePath(name.split("!")[-1]).name)
    return match[1] if match else None
