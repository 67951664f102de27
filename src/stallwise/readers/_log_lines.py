"""What any log line may carry: a time, a rank, a node; and the rank or node that a file's own name gives away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.fact import Scope, Source

_DAYS = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_MONTHS = {
    m: i for i, m in enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"])
}
_DATED = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)[ T,]+(\d\d):(\d\d):(\d\d(?:[.,]\d+)?)")
_GLOG = re.compile(r"\b[EIWF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d(?:\.\d+)?)")
_GLOG_LONG = re.compile(r"\b[EIWF](\d{4})(\d\d)(\d\d) (\d\d):(\d\d):(\d\d(?:\.\d+)?)")
_SHORT = re.compile(r"\b(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d(?:[.,]\d+)?)")  # vLLM: month-day
_SYSLOG = re.compile(r"\b([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d)")
_CLOCK = re.compile(r"(?<![\d:.])(\d\d):(\d\d):(\d\d(?:\.\d+)?)(?![:\d])")
_RANK = re.compile(
    r"^\[?rank ?(\d+)\]?:|\[rank[ _=:]?(\d+)\]|\[(?:PG[^\]]* )?Rank (\d+)\]|^\[\d+,(\d+)\]<std|\brank[=:](\d+)\b|"
    r"^\[?(?:Rank|RANK) (\d+)\b|^(\d+): |\[default(\d+)\]:|\bTP(\d+)\]",
    re.IGNORECASE,
)
_FILE_RANK = re.compile(
    r"(?:^|[^a-z])(?:global_?)?rank[-_.]?(\d+)(?:\D|$)|(?:^|[-_.])r(\d+)\.(?:log|txt|out|err)", re.IGNORECASE
)
_FILE_NODE = re.compile(r"(?:^|[^a-z])((?:node|host|worker|nid|gpu)[-_]?\w*\d+)(?:\.|$)", re.IGNORECASE)
DAY_S = 86400.0
LONGEST = 2000  # characters of a line that are looked at: messages are shorter, and patterns stay quick


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log."""

    number: int
    text: str
    time_s: float  # since the start of the year, or of the day where the line has no date; NaN without a time
    rank: int | None
    file: str

    @property
    def source(self) -> Source:
        return Source(self.file, f"line {self.number}")


def rank_of_file(name: str) -> int | None:
    """The rank a file name speaks of: rank1.log, nccl_trace_rank_7, torchelastic/attempt_0/3/stderr.log."""
    path = PurePath(name.split("!")[-1])
    if match := _FILE_RANK.search(path.name):
        return int(match[1] or match[2])
    parts = path.parts
    if len(parts) >= 2 and parts[-2].isdigit() and path.stem in ("stderr", "stdout"):
        return int(parts[-2])
    return None


def node_of_file(name: str) -> str | None:
    """The node a file name speaks of: node-03.log."""
    match = _FILE_NODE.search(PurePath(name.split("!")[-1]).name)
    return match[1] if match else None


def rank_of_line(text: str) -> int | None:
    """The rank that a launcher or a library put before its line."""
    match = _RANK.search(text[:200])
    return int(next(g for g in match.groups() if g is not None)) if match else None


def time_of_line(text: str) -> float:
    """Seconds since New Year (or midnight, where there is no date)."""
    head = text[:120]
    if match := _DATED.search(head):
        return _seconds(int(match[2]), int(match[3]), *match.groups()[3:])
    if match := _GLOG_LONG.search(head):
        return _seconds(int(match[2]), int(match[3]), *match.groups()[3:])
    if match := _GLOG.search(head):
        return _seconds(int(match[1]), int(match[2]), *match.groups()[2:])
    if match := _SHORT.search(head):
        return _seconds(int(match[1]), int(match[2]), *match.groups()[2:])
    if (match := _SYSLOG.search(head)) and match[1] in _MONTHS:
        return _seconds(_MONTHS[match[1]] + 1, int(match[2]), *match.groups()[2:])
    if match := _CLOCK.search(head):
        return _seconds(1, 1, *match.groups())
    return float("nan")


def _seconds(month: int, day: int, hour: str, minute: str, second: str) -> float:
    if not 1 <= month <= 12:
        return float("nan")
    days = _DAYS[month - 1] + day - 1
    return days * DAY_S + int(hour) * 3600 + int(minute) * 60 + float(second.replace(",", "."))


def lines_of(artifact: Artifact) -> Iterator[Line]:
    """All lines with what they carry; the file's own rank stands in where a line has none."""
    default = rank_of_file(artifact.name)
    for number, whole in enumerate(artifact.lines(), 1):
        text = whole[:LONGEST]
        rank = rank_of_line(text)
        yield Line(number, text, time_of_line(text), default if rank is None else rank, artifact.name)


def scope_of(line: Line) -> Scope:
    """The scope of a fact read off this line."""
    return Scope(rank=line.rank, node=node_of_file(line.file))
