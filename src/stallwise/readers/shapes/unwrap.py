"""Text without its envelope: encoding, colour codes, container and job tags, JSON lines, quoting, glued lines of several ranks.

The result has the program's own lines, so that whatever reads them reads the same with and without the envelope.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from itertools import accumulate

from stallwise.evidence.artifact import Artifact, stored_as
from stallwise.evidence.skeletons import Skeletons
from stallwise.evidence.textual import is_textual
from stallwise.readers._patterns import document, patterns
from stallwise.readers.shapes._json_log import clocked, log_in, moves
from stallwise.readers.shapes._quoted import mail_in, quoted_in
from stallwise.readers.shapes.aligned import has_gaps
from stallwise.readers.shapes.lines import LONGEST, MOST_ENVELOPES, prefixes

SAMPLE_LINES = 400
SAMPLE_BYTES = 1 << 17
MOST_TAGS = 64  # hosts in one file
TABLE_SHARE = 0.3  # of the lines: then the file is drawn, and a tag before each row only bends it
MOST_BYTES = 512 << 20
NEARLY_ALL = 0.9  # of the lines: a tag that fewer carry is part of what the program says
FEW = 5  # lines, below which all of them must carry the tag

_P = patterns("unwrap")
_KEYS = document("shapes/envelopes")
_STARTS = _P["start"].pattern
_DRAWN = tuple("|#+=")
_SPEAKER = {"task", "logger", "pid"}
_NO_JOINT = frozenset(" \t\n[](){}<>:|\"'=,")
_AFTER = r"(?<=[^\s\[\](){}<>:|\"'=,])"  # glued: no space, and not inside another prefix


def plain(artifact: Artifact) -> Artifact:
    """The same text without its envelope; the artifact itself where there is none, and for what is no text."""
    if b"\x00" in artifact.head and stored_as(artifact.head) == "utf-8" and is_textual(artifact.head):
        text = artifact.text(MOST_BYTES)
        artifact.lose(
            f"{text.count(chr(0)):,} empty bytes stand in the text: a full disk, a crash of its machine, or a log cut while written"
        )
        artifact = artifact.saying(text.replace("\x00", ""))
    if not is_text(artifact.head) and not artifact.head.lstrip().startswith(b"<?xml"):
        return artifact
    if stored_as(artifact.head) != "utf-8" or artifact.head.startswith(BOM_UTF8):
        artifact = artifact.saying(artifact.text(MOST_BYTES))
    for _ in range(MOST_ENVELOPES):  # a quotation around an export around a compose tag
        taken = next((lines for take in _ENVELOPES if (lines := take(artifact)) is not None), None)
        if taken is None:
            break
        artifact = artifact.saying("\n".join(taken) + "\n")
    if not is_text(artifact.head) or not _glued(_lines_in(artifact.distinct_head)):
        return artifact.afresh()
    return artifact.saying("\n".join(_repaired(artifact.skeletons)) + "\n")


def _uncoloured(artifact: Artifact) -> list[str] | None:
    """Without what a terminal was told, and what a recorder of it wrote above and below."""
    framed = _P["frame"].match(artifact.head[:99].decode("utf-8", "replace"))
    if b"\x1b" not in artifact.head and not framed:
        return None
    lines = [_P["ansi"].sub("", line) if "\x1b" in line else line for line in artifact.lines()]
    return ["", *lines[1:-1], "" if _P["frame"].match(lines[-1]) else lines[-1]] if framed else lines


def _untagged(artifact: Artifact) -> list[str] | None:
    """Without what containers, launchers and schedulers put before (nearly) all lines."""
    sample = _lines_in(artifact.head[:SAMPLE_BYTES])[:SAMPLE_LINES]
    tag = _known(sample) or _constant(sample)
    return [line[m.end() :] if (m := tag.match(line)) else line for line in artifact.lines()] if tag else None


_ENVELOPES = (_uncoloured, log_in, mail_in, quoted_in, _untagged)


def is_text(head: bytes) -> bool:
    """Lines that people or programs wrote, and no trace, database or markup."""
    start = head[:4096]
    if stored_as(start) != "utf-8":
        return True
    if b"traceEvents" in start or (b'"ph"' in start and b'"pid"' in start):  # events with or without a head
        return False
    return b"\x00" not in start and not start.lstrip().startswith((b"<?xml", b"SQLite"))


def _lines_in(head: bytes) -> list[str]:
    return [line[:LONGEST] for line in head.decode("utf-8", "replace").splitlines()]


def _known(lines: list[str]) -> re.Pattern[str] | None:
    """What nearly every line starts with, of what is known to carry lines."""
    filled = [line for line in lines[:SAMPLE_LINES] if line.strip()]
    need = len(filled) if len(filled) < FEW else NEARLY_ALL * len(filled)
    for prefix in prefixes() if len(filled) > 1 else ():
        found = [m for line in filled if (m := prefix.pattern.match(line))] if prefix.wrapper else []
        if found and len(found) >= need and not _identifies(found):
            return prefix.pattern
    return None


def _constant(lines: list[str]) -> re.Pattern[str] | None:
    """A name that nearly every line starts with, its digits free, and that says nothing of the run."""
    filled = [line for line in lines if line.strip()]
    first = _P["tag"].match(filled[0]) if len(filled) > 1 else None
    if first is None or _P["telling"].search(first[0].strip(" \t:|")):
        return None
    tag = re.compile(_P["number"].sub(r"\\d+", re.escape(first[0].rstrip())) + r"(?: |$)" * first[0].endswith(" "))
    need = len(filled) if len(filled) < FEW else NEARLY_ALL * len(filled)
    return tag if sum(tag.match(line) is not None for line in filled) >= need else None


def _identifies(found: list[re.Match[str]]) -> bool:
    """Whether marks say what their lines do not: who of several speaks, whose lines these are, or when."""
    fields, rest = found[0].re.groupindex, [m.string[m.end() :] for m in found]
    if len({tuple(m[name] for name in _SPEAKER & fields.keys()) for m in found}) > 1:
        return True
    if "task" in fields:  # the only number of the process there may be; over a drawn page it only bends it
        return sum(r[:1] in _DRAWN or has_gaps(r) for r in rest) < TABLE_SHARE * len(rest)
    return "time" in fields and not clocked(rest) and moves([m["time"] for m in found])


def _hosts(lines: list[str]) -> set[str]:
    """Names of hosts as NCCL prints them, their digits free: node-01 and node-02 are one name."""
    found = set(_P["nccl_start"].findall("\n".join(line for line in lines if " NCCL " in line)))
    return {_P["number"].sub(r"\\d+", re.escape(host)) for host in found}


def _joint(lines: list[str]) -> re.Pattern[str]:
    """Where a second line starts inside a line."""
    hosts = sorted(_hosts(lines), key=len, reverse=True)[:MOST_TAGS]
    glued_host = (
        rf"|(?<=[^\s])(?=(?:{'|'.join(hosts)}):\d{{1,9}}:\d{{1,9}} \[-?\d{{1,3}}\] (?:\S{{1,99}}:\d+ )?NCCL )"
        if hosts
        else ""
    )
    return re.compile(rf"{_AFTER}(?={_STARTS}){glued_host}")


def _glued(lines: list[str]) -> bool:
    joint = _joint(lines)
    return any(joint.search(lines[number]) for number in _glued_candidates(lines))


def _glued_candidates(lines: list[str]) -> set[int]:
    """Lines that may be two: a quick look, for the search for a joint is costly."""
    text = "\n".join(lines)
    places = [
        at
        for mark in _KEYS["marks"]
        if text.count(mark) > sum(text.count(before + mark) for before in "\n [")  # one stands where no line starts
        for at in _places(text, mark)
        if at and text[at - 1] not in _NO_JOINT and _P["start"].match(text, at) is not None
    ]
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0)) if places else []
    found = {bisect_right(starts, at) - 1 for at in places}
    return found | {
        number
        for number, line in enumerate(lines)
        if " NCCL " in line and (line.count(" NCCL ") > 1 or _P["some_cells"].match(line))
    }


def _places(text: str, mark: str) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        yield at
        at = text.find(mark, at + 1)


def _repaired(text: Skeletons) -> Sequence[str]:
    """Lines that several writers glued together, cut apart; the rest of a cut line is put back where it follows."""
    lines = text.lines
    firsts = [lines[first] for first in text.firsts]
    glued = _glued_candidates(firsts)  # of lines that differ in digits alone all are or none
    if not glued:
        return lines
    candidates = set(text.lines_of(glued))
    joint = _joint(firsts)
    starts = re.compile(rf"{_STARTS}|[\w.-]+:\d+:\d+ \[")
    clean: list[str] = []
    owed = -1  # the cut line whose rest may follow
    row = -1  # the row of numbers that somebody else's lines have interrupted
    for number, line in enumerate(lines):
        cuts = [m.start() for m in joint.finditer(line) if m.start()] if number in candidates else []
        if cuts:
            parts = [line[a:b] for a, b in zip([0, *cuts], [*cuts, len(line)], strict=True)]
            if _P["more_cells"].match(parts[0]) and row >= 0:
                clean[row] += parts.pop(0)
            elif _P["cells"].match(parts[0]):
                row = len(clean)
            owed = len(clean) if starts.match(parts[0]) else -1
            clean += parts
        elif row >= 0 and _P["more_cells"].match(line):
            clean[row] += line
            row = owed = -1
        elif owed >= 0 and line.strip() and not starts.match(line):
            clean[owed] += line
            owed = -1
        else:
            owed = -1
            clean.append(line)
    return clean
