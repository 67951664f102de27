"""A log inside something else: of a tree or a table the field that holds lines, in their order, whatever it is called."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.readers._patterns import document, patterns
from stallwise.readers.shapes import delimited, tree, xml
from stallwise.readers.shapes.clock import clock_of

SAMPLE_ROWS = 400
SAMPLE_BYTES = 1 << 17
MOST_BYTES = 512 << 20
NEARLY_ALL = 0.9  # of the records hold a text
MOSTLY = 0.5
BESIDE = 0.1  # digits above the records, a letter in them: more are results that nobody may lose
LEAST_LINES = 3  # of a text that one record holds
TABLE_SHARE = 0.3  # of the lines: then the file is laid out, and a stamp before each row would only bend it
DEEPEST = 12
MOST_NUMBERS = 3  # in a list beside a text, such as a moment in parts
LONGEST_STAMP = 40
STANDING_S = 1.0  # between the first and the last stamp: then all came at once, and the clock tells nothing
SOME_DAY_S = 1.2e9  # since 1970; programs that wrote stamps before it are no concern of ours

_P = patterns("unwrap")
_KEYS = document("shapes/carriers")
_LEVELS = {*(named := document("shapes/prefixes")["levels"]), *named.values()}
_ABOVE = "^."  # before keys of what stands above the records
_NAMED = re.compile(r"@?[A-Za-z_][\w.@-]{0,60}")
_WORDS = re.compile(r"[A-Za-z]{2}[^A-Za-z]{1,20}[A-Za-z]{2}")
_MEASURED = re.compile(r"-?\d{1,20}(?:\.\d{1,20}|(?:\.\d{1,20})? ?[A-Za-zµμ%/]{1,8})")
_TIMED = re.compile(r"\d{1,20}(?:\.\d{1,20})? ?(?:[mnuµμ]?s)")
_SPANS = ("span", "fields")  # where structured loggers put what a line is about
LAYOUT = tuple(" \t|#+-%{[<=")  # how rows of tables, frames of stacks and trees start
Record = dict[str, Any]


def log_in(artifact: Artifact) -> list[str] | None:
    """The lines; None where the text is a log of its own, or none at all."""
    start = artifact.head[:SAMPLE_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] in (b"{", b"["):
        likely = start[1:64].lstrip()[:1] in (b'"', b"{", b"[") and b"traceEvents" not in start
        return _of_records(_of_json(artifact, start)) if likely else None
    if start[:1] == b"<" and xml.recognises("", start[:2000].decode("utf-8", "replace")):
        return _of_records(_exploded(xml.parsed(artifact.text(xml.MAX_TEXT))))
    if (
        start[:2] == b"- " or _P["block"].search(start[:4096].decode("utf-8", "replace"))
    ) and artifact.size_bytes <= tree.MAX_YAML:
        return _of_records(_exploded(tree.tree_of("", artifact.text(tree.MAX_YAML))))
    sign = delimited.sign_of(start[: 1 << 16].decode("utf-8", "replace"))
    return _of_records(_of_table(artifact, sign)) if sign is not None else None


def _of_table(artifact: Artifact, sign: str) -> Iterator[Record]:
    text = io.StringIO(artifact.text(MOST_BYTES).lstrip("\ufeff"), newline="")
    rows = delimited.whole_rows(csv.reader(text, delimiter=sign))
    titles = next(rows, [])
    yield from (dict(zip(titles, row, strict=False)) for row in rows if row)


def _of_json(artifact: Artifact, start: bytes) -> Iterator[Record | str]:
    """Of a document its records; of objects a line these, and lines that are none as they are."""
    first, _, more = start.partition(b"\n")
    if not more.strip() or not isinstance(tree.row_of(first.decode("utf-8", "replace")), dict):
        whole = artifact.text(tree.MAX_TEXT) if artifact.size_bytes <= tree.MAX_TEXT else ""
        yield from _exploded(tree.tree_of("", whole))
        return
    for line in artifact.lines():
        found = tree.row_of(line) if line.lstrip()[:1] == "{" else None
        yield dict(tree.leaves(found, texts=True)) if isinstance(found, dict) else line


def _exploded(found: Any, above: Record | None = None, deep: int = 0) -> Iterator[Record]:
    """The innermost records of a tree, each with the plain values above it."""
    if isinstance(found, list) and deep <= DEEPEST:
        for one in [{"lines": "\n".join(found)}] if found and all(isinstance(x, str) for x in found) else found:
            yield from _exploded(_named(one) if isinstance(one, list) else one, above, deep + 1)
    elif isinstance(found, dict) and deep <= DEEPEST and not _measures(found):
        plain = dict(tree.leaves(found, texts=True))
        inner = [v for v in _lists(found) if v]
        below = {**(above or {}), **{_ABOVE + k: v for k, v in plain.items()}}
        for value in inner:
            yield from _exploded(value, below, deep + 1)
        if not inner:
            yield {**(above or {}), **plain}


def _measures(found: Record) -> bool:
    """Whether it holds a course of numbers: then it tells what was measured, and no lines."""
    return any(
        _measures(v) if isinstance(v, dict) else isinstance(v, list) and len(v) > MOST_NUMBERS and _are_numbers(v)
        for v in found.values()
    )


def _are_numbers(items: list[Any]) -> bool:
    return all(isinstance(x, int | float) for x in items)


def _named(items: list[Any]) -> Any:
    """A record told as a list of names and values, or of values alone; any other list as it is."""
    if not any(isinstance(x, dict | list) for x in items):
        return {str(at): x for at, x in enumerate(items)}
    pairs = [tuple(x.values()) for x in items if isinstance(x, dict) and len(x) == 2]
    named = all(isinstance(k, str) and _NAMED.fullmatch(k) for k, _ in pairs)
    return dict(pairs) if named and len({k for k, _ in pairs}) == len(items) else items


def _lists(found: Record) -> Iterator[list[Any]]:
    """Lists of records in an object, and in the objects that it holds."""
    for value in found.values():
        if isinstance(value, dict):
            yield from _lists(value)
        elif isinstance(value, list) and any(isinstance(x, (dict, list)) for x in value):
            yield value


def _last(key: str) -> str:
    return key.rpartition(".")[2].removesuffix(tree.LINES)


def _fields(rows: Sequence[Record | str]) -> tuple[list[str], str | None] | None:
    """The keys of texts, the best first, and that of the clock; None for records that are no log's."""
    told = [row for row in rows[:SAMPLE_ROWS] if isinstance(row, dict)]
    if not told or len(told) < NEARLY_ALL * sum(bool(x) for x in rows[:SAMPLE_ROWS]):
        return None
    columns: dict[str, list[Any]] = {}
    for row in told:
        for key, value in row.items():
            columns.setdefault(key, []).append(value)
    clocks = [k for k, v in columns.items() if len(v) >= NEARLY_ALL * len(told) and None not in map(_moment, v)]
    clock = next((k for s in _KEYS["stamp"] for k in clocks if _last(k) == s), next(iter(clocks), None))
    texts = {k: v for k, v in columns.items() if k not in clocks and all(isinstance(x, str) for x in v)}
    beside = clock is not None or len(columns) == 1 or not {*map(_last, columns)}.isdisjoint(_KEYS["envelope"])
    known = [k for s in _KEYS["message"] for k in texts if _last(k) == s and not k.startswith(_ABOVE)]
    worded = {k: sum(map(len, v)) for k, v in texts.items() if _is_worded(v, len(told))}
    above = sum(len(str(v)) for k, v in told[0].items() if k.startswith(_ABOVE) and isinstance(v, int | float))
    measured = [k for k, v in columns.items() if k not in clocks and k not in texts and any(map(_is_measured, v))]
    measured += [k for k, v in texts.items() if k not in worded and k not in known and any(map(_is_measured, v))]
    alone = above <= BESIDE * sum(len(x) for v in texts.values() for x in v)
    whole = [k for k in texts if not k.endswith(tree.LINES)]  # beside a list of lines may stand when each came
    told_most = max(whole, key=lambda k: sum(map(len, texts[k])), default="")
    letters = sum(len(str(x)) for v in columns.values() for x in v)
    longest = [told_most] if told_most and sum(map(len, texts[told_most])) >= MOSTLY * letters else []
    for keys in (known, longest):
        lines = sum(x.rstrip("\n").count("\n") + 1 for k in keys for x in texts[k])
        if lines >= max(LEAST_LINES, 2 * len(told)) and alone and not measured:
            return keys, clock
    if alone and beside and sum(any(k in row for k in known) for row in told) >= NEARLY_ALL * len(told):
        return known, clock
    if clock is None or not worded or not alone or any(not k.startswith(_ABOVE) for k in measured):
        return None
    return [max(worded, key=worded.__getitem__)], clock


def _is_worded(cells: list[str], records: int) -> bool:
    """Lines of words, and not the same again and again."""
    filled = [x for x in cells if x]
    worded = sum(_WORDS.search(x) is not None for x in filled) >= MOSTLY * max(len(filled), 1)
    return len(cells) >= NEARLY_ALL * records and worded and len(set(filled)) > 1 + 0.05 * records


def _is_measured(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, str) and _MEASURED.fullmatch(value.strip()) is not None)


def _of_records(given: Iterator[Record] | Iterator[Record | str]) -> list[str] | None:
    """The lines of these records; of what is no log only the first are looked at."""
    rows: list[Record | str] = [*islice(given, SAMPLE_ROWS)]
    found = _fields(rows)
    if found is None:
        return None
    rows += given
    keys, clock = found
    texts = [r if isinstance(r, str) else next((r[k] for k in keys if k in r), "") for r in rows]
    order: Sequence[int] = range(len(rows))
    stamps = [r[clock] for r in rows if isinstance(r, dict) and clock in r] if clock is not None else []
    ends = [m for stamp in (*stamps[:1], *stamps[-1:]) if (m := _moment(stamp)) is not None]
    if (
        len(stamps) == len(rows) and len(ends) > 1 and ends[0] > ends[1]
    ):  # the newest first, or one stream after the other
        moments = [m for stamp in stamps if (m := _moment(stamp)) is not None]
        if len(moments) == len(rows):
            order = sorted(range(len(rows) - 1, -1, -1), key=moments.__getitem__)
    lines = [t for t, r in zip(texts, rows, strict=True) if r is not t][:SAMPLE_ROWS]
    stamped = moves(ends) and not clocked(lines, laid_out=True)
    beside: dict[tuple[str, ...], _Beside] = {}
    return [line for at in order for line in _told(texts[at], rows[at], keys, clock if stamped else None, beside)]


_Beside = tuple[
    list[str], list[str]
]  # keys of a record whose values are its level, and those that may be numbers of its own


def _told(
    text: str, row: Record | str, keys: list[str], clock: str | None, beside: dict[tuple[str, ...], _Beside]
) -> list[str]:
    """The lines of one record, with clock and level before the first, and other plain numbers of it behind."""
    if isinstance(row, str):
        return [row]
    of_shape = tuple(row)
    if of_shape not in beside:
        beside[of_shape] = _beside(of_shape, keys)
    levels, others = beside[of_shape]
    before = [_stamp(row[clock])] if clock is not None and row.get(clock) else []
    before += [str(row[k]).upper() for k in levels if str(row[k]).lower() in _LEVELS][:1]
    after = [f"{_last(k)}={row[k]}" for k in others if _is_number(row[k])]
    first, *more = text.rstrip("\n").split("\n")
    return [" ".join([*before, first, *after]), *more]


def _is_number(value: Any) -> bool:
    """A plain number that is no clock, or a time with its unit."""
    if isinstance(value, str):
        return _TIMED.fullmatch(value) is not None
    return type(value) in (int, float) and not _seconds(value)


def _beside(row: tuple[str, ...], keys: list[str]) -> _Beside:
    """What stands beside the text of a record, and not in another part of it."""
    home = next((k for k in keys if k in row), "").rpartition(".")[0]
    homes = (home, *_SPANS)
    near = {_last(k): k for k in row if k.rpartition(".")[0] in homes and k not in keys}
    return [near[k] for k in _KEYS["level"] if k in near], [
        k for last, k in near.items() if last not in _KEYS["envelope"]
    ]


def clocked(rest: list[str], *, laid_out: bool) -> bool:
    """Lines with a clock of their own, or `laid_out` as of a table or dump that needs none."""
    bare = [laid_out and (r.count(",") >= 3 or (r[:1] in LAYOUT and not _P["boot"].match(r))) for r in rest]
    return sum(
        b or _P["clock"].search(r[:80]) is not None for b, r in zip(bare, rest, strict=True)
    ) >= TABLE_SHARE * len(rest)


def moves(moments: list[float]) -> bool:
    """Whether a clock tells anything: where all came at once it does not."""
    return bool(moments) and not abs(moments[-1] - moments[0]) < STANDING_S


def _stamp(value: object) -> str:
    """A clock as programs print it."""
    number = float(value) if isinstance(value, str) and value.isdecimal() else value
    seconds = _seconds(number) if isinstance(number, int | float) else None
    return str(value) if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S.%f}0Z"


def _moment(value: object) -> float | None:
    """Seconds of a clock; None for anything else."""
    if isinstance(value, str):
        if len(value) > LONGEST_STAMP:
            return None
        return _seconds(float(value)) if value.isdecimal() else clock_of(value)
    return _seconds(value) if isinstance(value, int | float) else None


def _seconds(number: float) -> float | None:
    """What counts from 1970, in seconds or thousandths, millionths or billionths of them; None for any other number."""
    units = (1, 1e3, 1e6, 1e9) if SOME_DAY_S < number < SOME_DAY_S * 1e10 else ()
    return next((number / unit for unit in units if SOME_DAY_S < number / unit < SOME_DAY_S * 2), None)
