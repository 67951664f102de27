"""What somebody put before (nearly) all lines of a text, found by looking at the lines: numbers of lines, names of files, hosts and
jobs, stamps, marks of quotations and the indent of a block, in whatever order and between whatever signs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from stallwise.readers._patterns import patterns
from stallwise.readers.shapes._enveloped import clocked, moves
from stallwise.readers.shapes.lines import known_prefix, time_of

SAMPLE_LINES = 400
NEARLY_ALL = 0.9  # of the lines: a tag that fewer carry is part of what the program says
MOSTLY = 0.5  # of the lines of a page that quotes something
FEW = 5  # lines, below which all of them must carry the tag
MOST_NAMES = 64  # pods, ranks or services in one file
LOOKED_AT = 160  # characters in which a tag ends
QUOTES = (">", "    ")
_MADE = frozenset("-./0123456789")

_P = patterns("unwrap")
_CLOCK = _P["stamp"].pattern
_TOKEN = re.compile(rf"(?P<clock>{_CLOCK})|(?P<number>(?:^ *)?\d+)|(?P<name>[A-Za-z_/~][\w./~-]*)|(?P<blank> +)|.")
_DIGITS = re.compile(r"\d+")
_ANY = {"clock": f"({_CLOCK})", "number": r" *\d+", "name": r"[A-Za-z_/~][\w./~-]*", "blank": " +"}
_OPENERS, _CLOSERS, _PARTING = "[(<", ":])>|\t", "\"',={"  # the last part cells and pairs, which are no tags
Token = tuple[str, str]  # its kind and how it is written


def untagged(lines: Sequence[str]) -> list[str] | None:
    """The lines without it; a clock stays where it tells something. None where they carry nothing."""
    tag = _tag([line for line in lines[:SAMPLE_LINES] if line.strip()])
    if tag is None:
        return None
    found = [tag.match(line) for line in lines]
    clocks = [m[1] for m in found if m is not None] if tag.groups else []
    rests = [m.string[m.end() :] for m in found[:SAMPLE_LINES] if m is not None]
    kept = (
        not clocked(rests, laid_out=False) and moves([time_of(c) for c in (clocks[0], clocks[-1])]) if clocks else False
    )
    if kept and not any(c.isalnum() for m in found[:1] if m is not None for c in m[0].replace(m[1], "")):
        return None  # the clock alone
    return [
        line if m is None else f"{m[1]} {line[m.end() :]}" if kept else line[m.end() :]
        for m, line in zip(found, lines, strict=True)
    ]


def _tag(lines: list[str]) -> re.Pattern[str] | None:
    """Token for token what nearly all lines begin with, up to where they differ or their program speaks."""
    need = len(lines) if len(lines) < FEW else NEARLY_ALL * len(lines)
    rows = [[(m.lastgroup or "sign", m[0]) for m in _TOKEN.finditer(line[:LOOKED_AT])] for line in lines]
    pieces: list[str] = []
    end, made, word, differ = 0, False, False, False  # up to where it is a tag; what it holds; how the lines go on
    for at in range(LOOKED_AT if len(lines) > 1 else 0):
        kind, piece = _common([row[at] for row in rows if len(row) > at], need)
        differ = not piece and len(lines) >= FEW
        if not piece:
            break
        rows = [row for row in rows if len(row) > at and re.fullmatch(piece, row[at][1])]
        here, before = [row[at][1] for row in rows], rows[0][at - 1][1] if at else ""
        counted = kind == "number" and len({*here}) > 1
        fresh = not counted and (at == 0 or before in _OPENERS + _CLOSERS or before.isspace())
        if here[0] in _PARTING or _speaks(kind, here, before, at) or (fresh and _is_known(rows, at)):
            break
        own = kind in ("clock", "number") or (kind == "name" and bool(_MADE & {*here[0]}))
        word |= kind == "name" and not own and (at == 0 or before not in _OPENERS)
        made |= own or here[0] == "["
        pieces.append(piece)
        if made and not word and (own or here[0] in _CLOSERS):
            end = len(pieces)
    if made and differ:
        end = len(pieces) - (pieces[-1] == _ANY["blank"])
    return _ending(pieces[:end], lines)


def _ending(pieces: list[str], lines: list[str]) -> re.Pattern[str] | None:
    """With the blanks behind, as many as all lines have; None for a tag that nothing parts from what it stands before."""
    tag = re.compile("".join(pieces))
    rests = [line[m.end() :] for line in lines if (m := tag.match(line)) and m.end() < len(line)] if pieces else []
    blanks = min((len(rest) - len(rest.lstrip(" ")) for rest in rests), default=0)
    parted = blanks > 0 or (bool(pieces) and pieces[-1] in map(re.escape, _CLOSERS))
    return re.compile(f"{tag.pattern}(?: {{{blanks}}}|$)") if parted else None


def _speaks(kind: str, here: list[str], before: str, at: int) -> bool:
    """Whether a part of a tag tells of the run: a word of training, a number that neither stands nor counts the lines."""
    if kind == "name":
        alone = at == 0 or (at == 1 and before in _OPENERS)
        constant = len({*here}) == 1 and (not alone or _P["file"].search(here[0]) is not None)
        return not constant and any(_P["telling"].search(word) for word in {*here})
    if kind != "number":
        return False
    numbers = [int(x) for x in here]
    counts = before in ("", ":") and numbers[0] > 0 and all(a < b for a, b in pairwise(numbers))
    dense = numbers[-1] - numbers[0] < len(numbers) / NEARLY_ALL and (before or numbers[0] == 1)
    return not (counts and dense) if len({*numbers}) > 1 else not before


def _is_known(rows: list[list[Token]], at: int) -> bool:
    """Whether here begins something that is known, and more than a clock."""
    found = [known_prefix("".join(text for _, text in row[at:])) for row in rows[:FEW]]
    return any(p is not None and {*p.pattern.groupindex} != {"time"} for p in found)


def _common(column: list[Token], need: float) -> tuple[str, str]:
    """What so many tokens are: the same but for their digits, or a few names; nothing where they differ."""
    (kind, count), *_ = Counter(kind for kind, _ in column).most_common(1) or [("", 0)]
    words = Counter(text for k, text in column if k == kind)
    if count < need or kind in ("clock", "number", "blank"):
        return kind, _ANY[kind] if count >= need else ""
    ((word, times),) = Counter(_DIGITS.sub("0", text) for text in words.elements()).most_common(1)
    if times >= need:
        return kind, re.escape(word).replace("0", r"\d+")
    few = kind == "name" and len(words) <= MOST_NAMES and count >= 2 * len(words)
    return kind, _ANY["name"] if few else ""


def unquoted(lines: Sequence[str], mark: str) -> list[str] | None:
    """A page with what it quotes set flush; None where that is not most of it."""
    told, shown, joined, inside = list(lines), 0, 0, False
    before = ""
    for at, line in enumerate(lines):
        if line.startswith(mark):
            inside = inside or not mark.isspace() or not (before.strip() or line.startswith(mark + " "))
            if inside:
                told[at], shown = line[len(mark) :].removeprefix("" if mark.isspace() else " "), shown + 1
                joined += before.startswith(mark)
        elif line.strip():
            if line[0].isspace():
                return None
            inside = False
        before = line
    double_spaced = shown > 1 and joined < MOSTLY * (shown - 1)
    return told if shown and not double_spaced and shown >= MOSTLY * sum(bool(x.strip()) for x in lines) else None
