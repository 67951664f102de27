"""Text without what carried it: a mail's fields and encoding, colour codes, container and job tags, JSON envelopes, glued lines of
several ranks.

The result has the program's own lines, so that whatever reads them reads the same with and without the carrier.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.skeletons import Skeletons, skeletons_of
from stallwise.readers._patterns import document, patterns
from stallwise.readers.shapes._folded import MOST_BYTES as MOST_FOLDED
from stallwise.readers.shapes._folded import unfolded
from stallwise.readers.shapes._indented import may_be_indented, undented
from stallwise.readers.shapes.aligned import has_gaps
from stallwise.readers.shapes.lines import LONGEST, MOST_CARRIERS, prefixes, time_of

SAMPLE_LINES = 400
SAMPLE_BYTES = 1 << 17
NEARLY_ALL = 0.9  # of the lines: a tag that fewer carry is part of what the program says
FEW = 5  # lines, below which all of them must carry the tag
MOST_TAGS = 64  # pods, ranks or services in one file
TABLE_SHARE = 0.3  # of the lines: then the file is laid out, and a stamp before each row would only bend it
MOST_BYTES = 512 << 20
LONGEST_LETTER = 4 << 20
MARKED = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")  # what says how letters are stored, before the first of them
STANDING_S = 1.0  # between the first and the last stamp: then all came at once, and the clock tells nothing
SOME_DAY_S = 1.2e9  # since 1970; programs that wrote stamps before it are no concern of ours
FEWEST_FIELDS = 2  # of a mail: a note may begin with "From:", a mail says when or to whom as well

_P = patterns("unwrap")
_KEYS = document("shapes/carriers")
_STARTS = _P["start"].pattern
_MESSAGES = [f'"{key}"'.encode() for key in _KEYS["message"]]
Message = tuple[str, dict[str, object]]  # and what else its envelope holds
_LAYOUT = tuple(" \t|#+-%{[<=")  # how rows of tables, frames of stacks and trees start
_DRAWN = tuple("|#+=")
_SPEAKER = {"task", "logger", "pid"}
_NO_JOINT = frozenset(" \t\n[](){}<>:|\"'=,")
_AFTER = r"(?<=[^\s\[\](){}<>:|\"'=,])"  # glued: no space, and not inside another prefix


def plain(artifact: Artifact) -> Artifact:
    """The same text without its carrier; the artifact itself where nothing carries it, and for what is no text."""
    head = artifact.head
    if not is_text(head):
        return artifact
    if head.startswith(MARKED):
        artifact = artifact.saying(artifact.text(MOST_BYTES))
    if exported := _exported(artifact):
        artifact = artifact.saying("\n".join(_opened(exported)) + "\n")
    if may_be_indented(artifact.head) and (flush := undented(artifact.lines())) is not None:
        artifact = artifact.saying("\n".join(flush) + "\n")
    if len(artifact.head) <= MOST_FOLDED and (whole := unfolded(artifact.lines())) is not None:
        artifact = artifact.saying("\n".join(whole) + "\n")
    head = artifact.head
    if artifact.size_bytes <= LONGEST_LETTER and is_letter(head[:LONGEST_LETTER].decode("utf-8", "replace")):
        return artifact.saying(letter(artifact.text(LONGEST_LETTER)))
    sample = _lines_in(head[:SAMPLE_BYTES])
    framed = sample and _P["frame"].match(sample[0])
    carried = b"\x1b" in head or framed or _envelope_share(sample) >= NEARLY_ALL or _carriers(sample)
    if not carried and not _glued(_lines_in(artifact.distinct_head)):
        return artifact.afresh()
    said, words = _unwrapped(artifact.text(MOST_BYTES))
    bare = artifact.saying("\n".join(said) + "\n")
    return bare if words is None else bare.cut_into(words)


def unwrapped(text: str) -> str:
    """Line for line what the program printed."""
    return "\n".join(_unwrapped(text)[0]) + "\n"


def _unwrapped(text: str) -> tuple[Sequence[str], Skeletons | None]:
    """The lines, and their skeletons where they are known: none was glued, and no message may hold a line feed of its own."""
    lines = text.splitlines()
    if "\x1b" in text:
        lines = [_P["ansi"].sub("", line) if "\x1b" in line else line for line in lines]
    if lines and _P["frame"].match(lines[0]):
        lines = ["", *lines[1:-1], "" if _P["frame"].match(lines[-1]) else lines[-1]]
    opened = _envelope_share(lines[:SAMPLE_LINES]) >= NEARLY_ALL
    if opened:
        lines = _opened([_message_in(line) or line for line in lines])
    for _ in range(MOST_CARRIERS):  # a compose tag around a container's stamp
        carrier = _carriers(lines[:SAMPLE_LINES])
        if carrier is None:
            break
        lines = [line[m.end() :] if (m := carrier.match(line)) else line for line in lines]
    words = skeletons_of(lines)
    clean = _repaired(words)
    return clean, words if clean is lines and lines and not opened else None


def is_text(head: bytes) -> bool:
    """Lines that people or programs wrote, and no trace, database or markup."""
    start = head[:4096]
    if start[:2] in MARKED:
        return True
    return b"\x00" not in start and not start.lstrip().startswith((b"<?xml", b"SQLite")) and b"traceEvents" not in start


def is_letter(text: str) -> bool:
    """Fields of a mail, then an empty line."""
    head = _P["mail_body"].split(text[: 1 << 14].lstrip(), maxsplit=1)[0].splitlines()
    if not head or not all(_P["mail_field"].match(line) or line[:1] in " \t" for line in head):
        return False
    fields = {line.partition(":")[0].lower() for line in head}
    return _P["mail_field"].match(head[0]) is not None and sum(f in fields for f in _KEYS["mail"]) >= FEWEST_FIELDS


def letter(text: str) -> str:
    """Subject and body of a mail, whatever encoding carried them; the text itself where it has no body that can be read."""
    from email import message_from_string, policy  # seventeen modules that few inputs need

    mail = message_from_string(text.lstrip(), policy=policy.default)
    try:
        part = mail.get_body(preferencelist=("plain", "html"))
        body = part.get_content() if part is not None else ""
    except (KeyError, LookupError, ValueError):
        return text
    if not isinstance(body, str) or not body.strip():
        return text
    subject = str(mail.get("subject", "")).strip()
    return f"{subject}\n\n{body}" if subject else body


def _lines_in(head: bytes) -> list[str]:
    return [line[:LONGEST] for line in head.decode("utf-8", "replace").splitlines()]


def _carriers(lines: list[str]) -> re.Pattern[str] | None:
    """What nearly every line starts with and no program of its own would print."""
    filled = [line for line in lines[:SAMPLE_LINES] if line.strip()]
    need = len(filled) if len(filled) < FEW else NEARLY_ALL * len(filled)
    if len(filled) < 2:
        return None
    for prefix in prefixes():
        if prefix.wrapper and _starts(filled, prefix.pattern, len(filled) - need):
            if not _tells([m for line in filled if (m := prefix.pattern.match(line))]):
                return prefix.pattern
    for shape in (_P["tag"], _P["host"]):
        tags = Counter(m[1] for line in filled if (m := shape.match(line)) and _is_tag(m[1]))
        if 0 < len(tags) <= MOST_TAGS and sum(tags.values()) >= need and _repeats(tags):
            return re.compile("(?:" + "|".join(map(re.escape, sorted(tags, key=len, reverse=True))) + r"):?[ \t]")
    return None


def _tells(found: list[re.Match[str]]) -> bool:
    """Whether marks say what their lines do not: who of several speaks, whose lines these are, or when."""
    fields, rest = found[0].re.groupindex, [m.string[m.end() :] for m in found]
    if len({tuple(m[name] for name in _SPEAKER & fields.keys()) for m in found}) > 1:
        return True
    if "task" in fields:  # the only number of the process there may be; over a drawn page it only bends it
        return sum(r[:1] in _DRAWN or has_gaps(r) for r in rest) < TABLE_SHARE * len(rest)
    return "time" in fields and not _own_clock(rest) and not _stands_still([m["time"] for m in found])


def _stands_still(stamps: list[str]) -> bool:
    return abs(time_of(stamps[-1]) - time_of(stamps[0])) < STANDING_S


def _starts(lines: list[str], pattern: re.Pattern[str], most_without: float) -> bool:
    """All lines but so many begin with this; it ends with the first that is too many."""
    without = 0
    for line in lines:
        without += pattern.match(line) is None
        if without > most_without:
            return False
    return True


def _is_tag(word: str) -> bool:
    """Brackets, or a name with a hyphen or a dot as hosts have; nothing that tells of the run itself."""
    return not _P["telling"].search(word) and (not word[0].isalpha() or "-" in word or "." in word)


def _repeats(tags: Counter[str]) -> bool:
    """A tag comes again and again; the first word of a sentence does not."""
    return sum(tags.values()) >= 2 * len(tags)


def _own_clock(rest: list[str]) -> bool:
    """Lines with a clock of their own, or of a table or dump that needs none."""
    laid_out = [r.count(",") >= 3 or (r[:1] in _LAYOUT and not _P["boot"].match(r)) for r in rest]
    clocks = [_P["clock"].search(r[:80]) is not None for r in rest]
    return sum(map(max, laid_out, clocks)) >= TABLE_SHARE * len(rest)


def _envelope_share(lines: list[str]) -> float:
    filled = [line for line in lines[:SAMPLE_LINES] if line.strip()]
    if not filled or filled[0].lstrip()[:1] != "{":
        return 0.0
    return sum(_message_in(line) is not None for line in filled) / len(filled)


def _decoded(text: str) -> Any:
    """JSON, if it is some."""
    import msgspec

    try:
        return msgspec.json.decode(text) if text.lstrip()[:1] in ("{", "[") else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _message_in(line: str) -> Message | None:
    return _message_of(_decoded(line))


def _message_of(row: Any) -> Message | None:
    """The message of a log envelope and what else it holds; None for any other JSON."""
    if not isinstance(row, dict):
        return None
    told = (
        x for x in row.values() if isinstance(x, dict) and _speaks(x)
    )  # the program's fields, inside the collector's
    if not _speaks(row) and (inner := next(told, None)) is not None:
        row = {**{k: v for k, v in row.items() if v is not inner}, **inner}
    for key in _KEYS["message"]:
        if isinstance(row.get(key), str) and not row.keys().isdisjoint({*_KEYS["envelope"]} - {key}):
            return str(row[key]), {k: v for k, v in row.items() if k != key}
    return None


def _speaks(row: dict[str, object]) -> bool:
    return any(isinstance(row.get(key), str) for key in _KEYS["message"])


def _exported(artifact: Artifact) -> list[Message]:
    """The envelopes of a document that holds a list of them and little else, as services export logs."""
    start = artifact.head[:SAMPLE_BYTES].lstrip()
    if start[:1] not in (b"{", b"[") or not any(key in start for key in _MESSAGES):
        return []
    first, _, more = start.partition(b"\n")
    if more.strip() and _decoded(first.decode("utf-8", "replace")) is not None:  # one document a line
        return []
    tree = _decoded(artifact.text(MOST_BYTES))
    while isinstance(tree, dict):
        inner = [x for x in tree.values() if isinstance(x, dict | list)]
        tree = inner[0] if len(inner) == 1 else None
    found = [_message_of(row) for row in tree or ()]
    return [x for x in found if x is not None] if None not in found else []


def _opened(found: Sequence[Message | str]) -> list[str]:
    """The messages, with clock and level before them where they have none of their own, and other plain values behind."""
    stamped = not _own_clock([f[0] for f in found[:SAMPLE_LINES] if not isinstance(f, str)])
    return [f if isinstance(f, str) else _told(*f, stamped) for f in found]


def _told(message: str, rest: dict[str, object], stamped: bool) -> str:
    before = [_stamp(rest[k]) for k in _KEYS["stamp"] if rest.get(k)][:1] if stamped else []
    before += [str(rest[k]).upper() for k in _KEYS["level"] if isinstance(rest.get(k), str)][:1]
    told = [
        f"{k}={v}"
        for k, v in rest.items()
        if k not in _KEYS["envelope"] and isinstance(v, int | float) and not isinstance(v, bool) and not _seconds(v)
    ]
    return " ".join([*before, message.rstrip("\n").replace("\n", " "), *told])


def _stamp(value: object) -> str:
    """A clock as programs print it."""
    seconds = _seconds(value) if isinstance(value, int | float) else None
    return str(value) if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S.%f}0Z"


def _seconds(number: float) -> float | None:
    """What counts from 1970, in seconds or thousandths, millionths or billionths of them; None for any other number."""
    return next((number / unit for unit in (1, 1e3, 1e6, 1e9) if SOME_DAY_S < number / unit < SOME_DAY_S * 2), None)


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
    return any(joint.search(lines[number]) for number in _suspects(lines))


def _suspects(lines: list[str]) -> set[int]:
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
    glued = _suspects(firsts)  # of lines that differ in digits alone all are or none
    if not glued:
        return lines
    suspects = set(text.lines_of(glued))
    joint = _joint(firsts)
    starts = re.compile(rf"{_STARTS}|[\w.-]+:\d+:\d+ \[")
    clean: list[str] = []
    owed = -1  # the cut line whose rest may follow
    row = -1  # the row of numbers that somebody else's lines have interrupted
    for number, line in enumerate(lines):
        cuts = [m.start() for m in joint.finditer(line) if m.start()] if number in suspects else []
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
