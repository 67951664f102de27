"""Python tracebacks in any log: what each ended in, and the innermost line of the user's own code on the way there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import job
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.readers._patterns import patterns
from stallwise.readers._traceback import is_own
from stallwise.readers.shapes.lines import Speakers

FORMAT = "Python tracebacks"
OPENS = "Traceback (most recent call last)"
FATAL = "Fatal Python error: "  # of faulthandler: its frames follow, innermost first
LONGEST = 400  # letters of a message that are kept
MOST = 8  # different exceptions of one log
BELOW_UNPARSED = 8  # lines: the code, a caret, and as much of other processes
NEAR_END = 80  # lines: a launcher's report and the rest of a message may follow what ended a program
ENDS, REPORTS = "ends the log", "reports a child"
ENDINGS = ("Error", "Exception", "Interrupt", "Exit", "Failure", "Timeout", "Died", "StopIteration")
_P = patterns("stacks")


@dataclass(slots=True)
class _Open:
    """A traceback as it is read."""

    line: int
    own: tuple[str, int, str, int] | None = None  # file, its line, function, and where that stands in the log
    frames: int = 0


@dataclass(slots=True)
class _Raised:
    """One exception, however often it came."""

    text: str
    line: int
    rank: int | None
    own: tuple[str, int, str, int] | None
    last: int
    times: int = 1
    ranks: set[int] = field(default_factory=set)


def recognises(name: str, head: bytes) -> bool:
    """A traceback with a frame, or a file that could not be parsed."""
    return (OPENS.encode() in head or FATAL.encode() in head or b"SyntaxError" in head) and b'File "' in head


def read(artifact: Artifact) -> Iterator[Item]:
    """Each exception once, in the order of their lines, with how often it came and on which ranks."""
    found: dict[str, _Raised] = {}
    for raised in _raised(artifact):
        key = "".join(c for c in raised.text if not c.isdigit())
        same = found.setdefault(key, raised)
        if same is not raised:
            same.times, same.last = same.times + 1, raised.last
            same.own = same.own or raised.own
        if raised.rank is not None:
            same.ranks.add(raised.rank)
    lines = artifact.lines()
    total = len(lines)
    while total and not lines[total - 1].strip():
        total -= 1
    for one in [*found.values()][-MOST:]:
        yield from _facts(one, artifact.name, total)


def _facts(one: _Raised, file: str, total: int) -> Iterator[Fact]:
    scope = Scope(rank=one.rank if len(one.ranks) == 1 else None)
    reports = _P["reports"].search(one.text.partition(":")[0]) is not None
    note = REPORTS if reports else ENDS if one.last >= total - NEAR_END else ""
    yield Fact(job.RAISED, one.text, Source(file, f"line {one.line}"), scope, max(one.times, len(one.ranks)), note=note)
    if one.own:
        place, at, function, line = one.own
        yield Fact(job.RAISED_AT, f"{place}:{at} in {function}", Source(file, f"line {line}"), scope, note=one.text)


def _raised(artifact: Artifact) -> Iterator[_Raised]:
    """Walks the lines; ranks may speak in turns."""
    text, speakers = artifact.skeletons, Speakers(artifact)
    relevant = text.where(lambda x: OPENS in x or FATAL in x or 'File "' in x or "SyntaxError" in x or _ends(x))
    open_: dict[int, _Open] = {}
    fatal: dict[int, _Raised] = {}
    unparsed: dict[int, tuple[str, int, str, int]] = {}
    for line in map(speakers.line, text.lines_of(relevant)):
        who = -1 if line.rank is None else line.rank
        words = _P["prefix"].sub("", line.text)
        if FATAL in words:
            fatal[who] = _Raised(
                words[words.index(FATAL) :][:LONGEST].strip(), line.number, line.rank, None, line.number
            )
        elif OPENS in words:
            open_[who] = _Open(line.number)
        elif who in fatal and (frame := _P["frame"].search(words)):
            if fatal[who].own is None and _mine(frame["file"]):
                fatal[who].own = frame["file"], int(frame["line"]), frame["function"], line.number
        elif who in open_ and (frame := _P["frame"].search(words)):
            here = open_[who]
            here.frames += 1
            if _mine(frame["file"]):
                here.own = frame["file"], int(frame["line"]), frame["function"], line.number
        elif who not in open_ and (frame := _P["unparsed"].match(words)):
            unparsed[who] = frame["file"], int(frame["line"]), "<module>", line.number
        elif who in unparsed and line.number - unparsed[who][3] <= BELOW_UNPARSED and (bad := _not_parsed(words)):
            yield _Raised(bad, line.number, line.rank, unparsed.pop(who), line.number)
        elif who in open_ and open_[who].frames and (ended := _P["raised"].match(words.strip())):
            here = open_.pop(who)
            yield _Raised(ended[0][:LONGEST].strip(), line.number, line.rank, here.own, line.number)
    yield from fatal.values()


def _not_parsed(words: str) -> str:
    """ "SyntaxError: invalid syntax", also where two processes print it into one line; empty where the line is none."""
    if not (found := _P["not_parsed"].search(words)):
        return ""
    what = words.replace(found["type"], "").strip(" :^\t")
    half = what[: len(what) // 2]
    what = half if half * 2 == what else what
    return f"{found['type']}: {what}"[:LONGEST] if what else found["type"]


def _mine(file: str) -> bool:
    return is_own(file) and not _P["entry"].search(file)


def _ends(line: str) -> bool:
    return line[:1] != " " and any(word in line for word in ENDINGS)
