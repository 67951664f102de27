"""A document: the answer of any verb as blocks. Four writers lay it out; nothing is computed after this point.

A number is placed once, as a `Number` or a `Range` with its unit, and every form shows the same figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any

from stallwise.units import Unit, show

if TYPE_CHECKING:
    from markupsafe import Markup


class Depth(IntEnum):
    """How far down a block stands: in every form, in reports, or on the page alone."""

    FIRST = 0
    REPORT = 1
    PAGE = 2


class Tab(StrEnum):
    """The part of the page that a block stands in; where there is one only, no tabs are drawn."""

    WHY = "Why"
    TIMELINE = "Timeline"
    KERNELS = "Kernels and lines"
    MEMORY = "Memory"
    EVERYTHING = "Everything"


@dataclass(frozen=True, slots=True)
class Number:
    """One figure: its value in SI, how it is written, and where it comes from."""

    value: float
    unit: Unit
    written: str = ""  # where the unit's own way does not do
    source: str = ""

    def __str__(self) -> str:
        return self.written or show(self.value, self.unit)


@dataclass(frozen=True, slots=True)
class Range:
    """Two ends of one figure."""

    low: float
    high: float
    unit: Unit
    written: str = ""
    source: str = ""

    def __str__(self) -> str:
        return self.written or span(self.low, self.high, self.unit)


Part = str | Number | Range
Words = Part | tuple[Part, ...]  # a sentence, with its figures in it


def span(low: float, high: float, unit: Unit) -> str:
    """ "44.2 to 63.6 ms" with the unit once where both ends share it."""
    first, last = show(low, unit), show(high, unit)
    if first == last:
        return last
    number, _, tail = first.rpartition(" ")
    return f"{number} to {last}" if number and last.endswith(f" {tail}") else f"{first} to {last}"


def plain(words: Words) -> str:
    """As a person reads it."""
    return "".join(map(str, words)) if isinstance(words, tuple) else str(words)


def figures_in(words: Words) -> Iterator[Number | Range]:
    """The figures of a sentence."""
    for part in words if isinstance(words, tuple) else (words,):
        if not isinstance(part, str):
            yield part


def sort_value(words: Words) -> float | str:
    """What rows are sorted by: the figure, or the words; nothing known stands last."""
    if isinstance(words, Number):
        return float(f"{words.value:.6g}")
    return plain(words) or -1.0


def joined(parts: Iterable[Words], between: str) -> tuple[Part, ...]:
    """Sentences in a row; empty ones are left out."""
    found: list[Part] = []
    for words in parts:
        if plain(words):
            found += [between] if found else []
            found += words if isinstance(words, tuple) else (words,)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer: what, why, what to do, how sure."""

    what: Words
    why: Words = ""
    do: Words = ""
    tone: str = "good"  # "good", "bad" or "unclear"
    tail: Words = ""  # the cause and how sure
    voice: str = ""  # of a diagnosis: a proof, recognition or nobody yet
    worth: Words = ""  # what fixing it saves
    sources: tuple[str, ...] = ()
    do_depth: Depth = Depth.FIRST  # deeper where a block below says it with its price

    @property
    def line(self) -> str:
        """What stands first in every form."""
        return f"{self.voice}  {plain(self.what)}" if self.voice else plain(self.what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Titled:
    """What all blocks have."""

    title: str = ""  # the heading of reports, and of the terminal where there is no label
    label: str = ""  # six characters at most: stands in the terminal's margin
    depth: Depth = Depth.FIRST
    tab: Tab = Tab.WHY


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence and the places that it rests on."""

    text: Words
    places: str = ""
    full: str = ""  # the same places with their folders


@dataclass(frozen=True, slots=True)
class Steps(Titled):
    """Sentences, one a line."""

    lines: tuple[Line, ...]
    ordered: bool = False
    most: int = 0  # that the terminal shows; 0: all


@dataclass(frozen=True, slots=True)
class Facts(Titled):
    """What, and how much of it: two columns."""

    rows: tuple[tuple[str, Words], ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    head: str
    drop: int = 0  # where room is short the highest goes first; 0 stays
    right: bool = False  # figures
    wraps: bool = False  # sentences: the one column that may go on below itself
    meter: bool = False  # the page draws its shares
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Table(Titled):
    """Rows that are alike."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Words, ...], ...]
    best: frozenset[int] = frozenset()  # rows that stand out
    note: Words = ""
    most: int = 0  # rows that the terminal shows; 0: all
    bare: bool = False  # the terminal leaves out the headings
    inline: bool = False  # the terminal joins the first columns of all rows in one line
    folded: str = ""  # reports show it on demand, under these words
    is_open: bool = False  # unless it is the first of several
    slug: str = ""  # its rows can be sorted on the page, under this name

    @property
    def filled(self) -> tuple[int, ...]:
        """Columns in which anything stands."""
        return tuple(i for i in range(len(self.columns)) if any(plain(row[i]) for row in self.rows))


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a whole."""

    word: str
    value: Number
    share: float
    kind: str = ""  # its colour
    ends: Range | None = None
    meaning: str = ""
    hot: bool = False  # the one that the answer is about


@dataclass(frozen=True, slots=True)
class Bars(Titled):
    """Parts that make up one whole, largest first."""

    bars: tuple[Bar, ...]
    whole: Number
    goal_share: float | None = None  # where it would end after the first fix
    note: Words = ""
    basis: str = ""


@dataclass(frozen=True, slots=True)
class Series(Titled):
    """Values over time."""

    name: str
    values: tuple[float, ...]
    unit: Unit
    most: float | None = None  # of the scale; default: the largest value
    low: Number | None = None
    high: Number | None = None


@dataclass(frozen=True, slots=True)
class Note(Titled):
    """A paragraph."""

    text: Words
    warns: bool = False


@dataclass(frozen=True, slots=True)
class Code(Titled):
    """Something to type or to copy."""

    code: str
    lead: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing with its words, and the same for those who cannot see it."""

    slug: str
    title: str
    svg: Markup
    caption: str = ""
    source: str = ""
    legend: tuple[tuple[str, str], ...] = ()  # (class, word)
    rows: tuple[tuple[str, ...], ...] = ()  # head first
    drawn: tuple[str, ...] = ()  # for a terminal
    label: str = ""
    depth: Depth = Depth.PAGE
    tab: Tab = Tab.WHY


@dataclass(frozen=True, slots=True)
class Interactive:
    """A part of the page that answers clicks, with a template, a style and scripts in a folder of its name."""

    name: str
    scripts: tuple[str, ...]
    values: dict[str, Any]
    title: str = ""
    label: str = ""
    depth: Depth = Depth.PAGE
    tab: Tab = Tab.WHY


@dataclass(frozen=True, slots=True)
class Group(Titled):
    """Blocks under one heading; a folded one shows its heading and badges until it is opened."""

    blocks: tuple[Block, ...]
    badges: tuple[Words, ...] = ()
    folded: bool = False
    is_open: bool = False
    number: int | None = None  # of the finding that it tells
    places: int = 0  # that the timeline shows of it
    slug: str = ""


Block = Steps | Facts | Table | Bars | Series | Note | Code | Picture | Interactive | Group


@dataclass(frozen=True, slots=True)
class Listed:
    """One thing that was looked for: what was found, what it is worth, and where the page tells it."""

    kind: str  # "fail", "info", "passed", "not judged" or "crashed"
    word: str
    worth: Words = ""
    slug: str = ""  # of the group that tells it
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A whole answer."""

    verdict: Verdict
    blocks: tuple[Block, ...]
    listed: tuple[Listed, ...] = ()  # beside everything else on the page
    subject: str = ""  # what was looked at
    verb: str = ""
    inputs: tuple[str, ...] = ()

    def down_to(self, depth: Depth) -> Document:
        """The same without what stands deeper."""
        return replace(self, blocks=_down_to(self.blocks, depth))


def _down_to(blocks: Sequence[Block], depth: Depth) -> tuple[Block, ...]:
    kept: list[Block] = []
    for block in blocks:
        if block.depth > depth:
            continue
        if isinstance(block, Group):
            inner = _down_to(block.blocks, depth)
            if not inner and not block.folded:
                continue
            block = replace(block, blocks=inner)
        kept.append(block)
    return tuple(kept)


def document(verdict: Verdict, *blocks: Block | None, **about: Any) -> Document:
    """Blocks in which nothing stands are left out."""
    return Document(verdict, tuple(b for b in blocks if b is not None and not is_empty(b)), **about)


def is_empty(block: Block) -> bool:
    """Nothing to show."""
    match block:
        case Steps():
            return not block.lines
        case Facts() | Table():
            return not block.rows
        case Bars():
            return not block.bars
        case Series():
            return not block.values
        case Note():
            return not plain(block.text)
        case Group():
            return not block.folded and all(map(is_empty, block.blocks))
        case Picture():
            return not block.svg
    return False


def steps(title: str, rows: Iterable[Words | Line], **more: Any) -> Steps:
    """Sentences without places, or with them."""
    return Steps(tuple(row if isinstance(row, Line) else Line(row) for row in rows if row), title=title, **more)


def table(title: str, columns: Sequence[Column | str], rows: Iterable[Sequence[Words]], **more: Any) -> Table:
    """A heading that is only a word is a column that stays."""
    heads = tuple(c if isinstance(c, Column) else Column(c) for c in columns)
    return Table(heads, tuple(tuple(row) for row in rows), title=title, **more)


def number(head: str, drop: int = 0, hint: str = "") -> Column:
    """A column of figures."""
    return Column(head, drop, right=True, hint=hint)


def sentence(head: str, drop: int = 0) -> Column:
    """A column of sentences."""
    return Column(head, drop, wraps=True)


# Figures in the units that answers use most.
def seconds(value: float, source: str = "") -> Number:
    """A time."""
    return Number(value, Unit.SECOND, source=source)


def share(value: float, digits: int = 0, *, signed: bool = False) -> Number:
    """A part of one, as a percentage."""
    return Number(value, Unit.SHARE, f"{value:+.{digits}%}" if signed else f"{value:.{digits}%}")


def size(value: float) -> Number:
    """Bytes, in powers of ten."""
    return Number(value, Unit.BYTE)


GIB = 2.0**30


def gib(value: float, *, signed: bool = False, digits: int = 1) -> Number:
    """Bytes of memory, as cards are sold."""
    sign = "+" if signed else ""
    small = not signed and 0 < abs(value) < 0.1 * GIB
    return Number(value, Unit.BYTE, f"{value / GIB:.3g} GiB" if small else f"{value / GIB:{sign}.{digits}f} GiB")


def rate(value: float) -> Number:
    """Bytes a second."""
    return Number(value, Unit.BYTE_PER_S)


def count(value: float, written: str = "") -> Number:
    """Whole things."""
    return Number(value, Unit.COUNT, written or f"{value:,.0f}")


def dollar(value: float | None, digits: int = 2) -> Part:
    """A price; a question mark where it is not known."""
    return "?" if value is None else Number(value, Unit.DOLLAR, f"${value:,.{digits}f}")


def seconds_range(low: float, high: float) -> Range:
    """Two ends of a time."""
    return Range(low, high, Unit.SECOND)


def numbers_of(found: Document, depth: Depth) -> Iterator[Number | Range]:
    """Every figure that a form of this depth shows; of tables and lists that the terminal shortens, what it shows."""
    v = found.verdict
    for words in (v.what, v.why, v.worth, v.tail, *((v.do,) if v.do_depth <= depth else ())):
        yield from figures_in(words)
    for block in found.down_to(depth).blocks:
        yield from _numbers(block, depth)


def _numbers(block: Block, depth: Depth) -> Iterator[Number | Range]:
    cut = block.most if depth is Depth.FIRST and isinstance(block, (Steps, Table)) and block.most else None
    match block:
        case Steps():
            sentences: list[Words] = [line.text for line in block.lines[:cut]]
        case Facts():
            sentences = [words for _, words in block.rows]
        case Table():
            across = 2 if block.inline and depth is Depth.FIRST else None
            sentences = [cell for row in block.rows[:cut] for cell in row[:across]] + [block.note]
        case Bars():
            sentences = [words for bar in block.bars for words in (bar.value, bar.ends or "")]
            sentences += [block.note] if depth > Depth.FIRST else []
        case Series():
            sentences = [block.low or "", block.high or ""]
        case Note():
            sentences = [block.text]
        case Group():
            sentences = list(block.badges)
            for inner in () if block.folded and depth < Depth.PAGE else block.blocks:
                yield from _numbers(inner, depth)
        case _:
            sentences = []
    for words in sentences:
        yield from figures_in(words)
