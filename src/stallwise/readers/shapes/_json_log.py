"""JSON lines of a logger or a container runtime, and a list of such objects, as the lines that the program printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.readers._patterns import document, patterns
from stallwise.readers.shapes import tree
from stallwise.readers.shapes.clock import clock_of

SAMPLE_ROWS = 400
NEARLY_ALL = 0.9  # of the records hold a message
TABLE_SHARE = 0.3  # of the lines: then the text is laid out, and a stamp before each row would only bend it
STANDING_S = 1.0  # between the first and the last stamp: then all came at once
LAYOUT = tuple(" \t|#+-%{[<=")  # how rows of tables, frames of stacks and trees start
SOME_DAY_S = 1.2e9  # since 1970; programs that wrote stamps before it are no concern of ours

_P = patterns("unwrap")
_KEYS = document("shapes/envelopes")
_LEVELS = {*(named := document("shapes/prefixes")["levels"]), *named.values()}
_TIMED = re.compile(r"\d{1,20}(?:\.\d{1,20})? ?[mnuµμ]?s")
Record = dict[str, Any]


def log_in(artifact: Artifact) -> list[str] | None:
    """The lines; None where the text is no JSON, or its records are no messages."""
    start = artifact.head[: 1 << 17].lstrip(b"\xef\xbb\xbf \t\r\n")
    likely = start[:1] in (b"{", b"[") and start[1:64].lstrip()[:1] in (b'"', b"{") and b"traceEvents" not in start
    rows = _rows(artifact, start) if likely else []
    sample = [row for row in rows[:SAMPLE_ROWS] if row]
    messages = [row for row in sample if isinstance(row, dict) and _message(row) and _first(row, "beside")]
    if not messages or len(messages) < NEARLY_ALL * len(sample):
        return None
    stamped = moves([row[key] for row in messages if (key := _first(row, "stamp"))]) and not clocked(
        [str(row[_message(row)]) for row in messages]
    )
    return [line for row in rows for line in ([row] if isinstance(row, str) else _lines(row, stamped))]


def _rows(artifact: Artifact, start: bytes) -> list[Record | str]:
    """Objects a line, and lines that are none as they are; or the objects of a list."""
    if start[:1] == b"[":
        found = tree.tree_of("", artifact.text(tree.MAX_TEXT)) if artifact.size_bytes <= tree.MAX_TEXT else None
        whole = isinstance(found, list) and all(isinstance(row, dict) for row in found)
        return [dict(tree.leaves(row, texts=True)) for row in found] if whole and isinstance(found, list) else []
    first = start.partition(b"\n")[0].decode("utf-8", "replace")
    return list(_objects(artifact)) if isinstance(tree.row_of(first), dict) else []


def _objects(artifact: Artifact) -> Iterator[Record | str]:
    for line in artifact.lines():
        found = tree.row_of(line) if line.lstrip()[:1] == "{" else None
        yield dict(tree.leaves(found, texts=True)) if isinstance(found, dict) else line


def _last(key: str) -> str:
    return key.rpartition(".")[2]


def _first(row: Record, kind: str) -> str:
    """The key of this kind that a record has, the best first."""
    by_name = {_last(key): key for key in row}
    return next((by_name[name] for name in _KEYS[kind] if name in by_name), "")


def _message(row: Record) -> str:
    return _first({k: v for k, v in row.items() if isinstance(v, str)}, "message")


def clocked(lines: list[str]) -> bool:
    """Lines with a clock of their own, or laid out as of a table or dump that needs none."""
    bare = (r.count(",") >= 3 or (r[:1] in LAYOUT and not _P["boot"].match(r)) for r in lines)
    own = sum(b or _P["clock"].search(r[:80]) is not None for b, r in zip(bare, lines, strict=True))
    return own >= TABLE_SHARE * len(lines)


def moves(stamps: list[Any]) -> bool:
    """Whether a clock tells anything: where all came at once it does not."""
    ends = [_seconds(x) if isinstance(x, int | float) else clock_of(str(x)) for x in (*stamps[:1], *stamps[-1:])]
    return len(ends) == 2 and (None in ends or not abs(ends[1] - ends[0]) < STANDING_S)  # type: ignore[operator]


def _lines(row: Record, stamped: bool) -> list[str]:
    """The lines of one record: clock and level before the first, plain numbers of the record behind it."""
    message = _message(row)
    if not message:
        return [" ".join(f"{_last(k)}={v}" for k, v in row.items())]
    near = {_last(k): k for k in row if k != message}
    level = str(row.get(_first(row, "level"), ""))
    before = [_stamp(row[key])] if stamped and (key := _first(row, "stamp")) else []
    before += [level.upper()] if level.lower() in _LEVELS else []
    after = [f"{k}={row[key]}" for k, key in near.items() if _is_number(row[key]) and k not in _KEYS["beside"]]
    first, *more = str(row[message]).rstrip("\n").split("\n")
    return [" ".join([*before, first, *after]), *more]


def _is_number(value: Any) -> bool:
    """A plain number that is no clock, or a time with its unit."""
    if isinstance(value, str):
        return _TIMED.fullmatch(value) is not None
    return type(value) in (int, float) and _seconds(value) is None


def _stamp(value: Any) -> str:
    """A clock as programs print it."""
    number = float(value) if isinstance(value, str) and value.isdecimal() else value
    seconds = _seconds(number) if isinstance(number, int | float) else None
    return str(value) if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S.%f}0Z"


def _seconds(number: float) -> float | None:
    """What counts from 1970, in seconds or thousandths, millionths or billionths of them; None for any other number."""
    units = (1, 1e3, 1e6, 1e9) if SOME_DAY_S < number < SOME_DAY_S * 1e10 else ()
    return next((number / unit for unit in units if SOME_DAY_S < number / unit < SOME_DAY_S * 2), None)
