"""A document for a terminal: the answer first, a short label in the margin, tables that drop columns and never wrap."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from stallwise.render.blocks import (
    Bars,
    Block,
    Code,
    Column,
    Depth,
    Document,
    Facts,
    Group,
    Line,
    Note,
    Picture,
    Series,
    Steps,
    Table,
    Verdict,
    plain,
)
from stallwise.render.documents import document_of
from stallwise.render.visible import visible
from stallwise.terminal import terminal_columns

MARGIN = 7  # six characters and a space
NARROWEST, WIDEST = 40, 130
BAR_CELLS = 36
SHORTEST_CELL = 12
GAP = 2
QUOTES = "\u201c\u201d"
CUT = "\u2026"  # where typed words were shortened


def to_text(answer: object, *, color: bool = False, width: int | None = None, **options: Any) -> str:
    """The first screen of a document, or of an answer that has one; ANSI colours when asked."""
    document = answer if isinstance(answer, Document) else document_of(answer, **options)
    wide = width or min(WIDEST, terminal_columns(110))
    page = _Page(max(NARROWEST, wide), color)
    lines = page.verdict(document.verdict)
    for block in document.down_to(Depth.FIRST).blocks:
        lines += page.block(block)
    if document.subject and document.verdict.voice:
        lines += page.rows("from", [page.dim(document.subject)])
    return visible("\n".join(line.rstrip() for line in lines), colors=color)


class _Page:
    """Lines of one width, with ANSI colours or without."""

    def __init__(self, width: int, color: bool) -> None:
        self.width = width
        self.color = color
        self._ways: dict[type, Callable[[Any], list[str]]] = {
            Steps: self._steps, Facts: self._facts, Table: self._table, Bars: self._bars, Series: self._series,
            Note: self._note, Code: self._code, Picture: self._picture, Group: self._group,
        }  # fmt: skip

    def verdict(self, says: Verdict) -> list[str]:
        """The answer, how sure at the right edge, and why below it."""
        paint = {"bad": self.bad, "good": self.good}.get(says.tone, self.doubt)
        left, right = says.line, plain(says.tail)
        gap = self.width - len(left) - len(right)
        if right and gap >= GAP:
            lines = [paint(left) + " " * gap + self.dim(right)]
        else:
            lines = [paint(line) for line in self._hanging(left, 0, MARGIN)]
            lines += [self.dim(line) for line in self._hanging(right, MARGIN, MARGIN)]
        for words in (says.why, says.worth, says.do if says.do_depth is Depth.FIRST else ""):
            lines += self._hanging(plain(words), MARGIN, MARGIN)
        return lines

    def block(self, block: Block) -> list[str]:
        """Its lines; a block without a label has its title above it."""
        way = self._ways.get(type(block))
        return way(block) if way else []

    def rows(self, label: str, rows: Sequence[str], title: str = "") -> list[str]:
        """Rows beside a label, or below a title; long ones go on under themselves."""
        indent = MARGIN if label or not title else GAP
        lines = [line for row in rows for line in self._hanging(row, indent, indent + GAP)]
        return self._labelled(label, lines, title)

    def _labelled(self, label: str, lines: list[str], title: str = "") -> list[str]:
        if not lines:
            return []
        if label:
            return [f"{label:{MARGIN}}{lines[0][MARGIN:]}", *lines[1:]]
        return ["", title, *lines] if title else lines

    def _hanging(self, text: str, first: int, rest: int) -> list[str]:
        if not text:
            return []
        return [
            line
            for part in text.split("\n")
            for line in textwrap.wrap(
                part, self.width, initial_indent=" " * first, subsequent_indent=" " * rest, break_long_words=False,
                break_on_hyphens=False,
            )
        ]  # fmt: skip

    def _steps(self, block: Steps) -> list[str]:
        """Sentences with their places; a place is not repeated from line to line, nor typed words quoted already."""
        rows: list[str] = []
        last = ""
        shown = block.lines[: block.most or None]
        for number, line in enumerate(shown, 1):
            text = plain(line.text)
            if _quotes(text, line.places):
                if _quotes(text, last):
                    continue
                last = line.places
            mark = f"{number}  " if block.ordered and len(shown) > 1 else ""
            rows.append(f"{mark}{self._cited(text, line, last)}")
            last = line.places or last
        left = len(block.lines) - len(shown)
        return self.rows(block.label, [*rows, *([f"and {left} more"] if left else [])], block.title)

    def _cited(self, text: str, line: Line, last: str) -> str:
        return f"{text}  ({line.places})" if line.places and line.places != last else text

    def _facts(self, block: Facts) -> list[str]:
        wide = max(len(name) for name, _ in block.rows)
        indent = MARGIN if block.label else GAP if block.title else 0
        lines = []
        for name, words in block.rows:
            first, *rest = self._hanging(plain(words), indent + wide + GAP, indent + wide + GAP) or [""]
            lines += [f"{'':{indent}}{name:{wide}}{'':{GAP}}{first.lstrip()}", *rest]
        return self._labelled(block.label, lines, block.title)

    def _note(self, block: Note) -> list[str]:
        return self.rows(block.label, [plain(block.text)], block.title)

    def _code(self, block: Code) -> list[str]:
        if not block.label and not block.lead:  # as it is written, with an empty line above
            lines = [line for text in block.code.split("\n") for line in self._hanging(text, 0, 0) or [""]]
            return ["", *([block.title] if block.title else []), *lines]
        return self.rows(block.label, [f"{block.lead}: {block.code}" if block.lead else block.code], block.title)

    def _bars(self, block: Bars) -> list[str]:
        wide = max(len(bar.word) for bar in block.bars)
        lines = []
        for bar in block.bars:
            cells = "█" * round(BAR_CELLS * bar.share) or "▏"
            ends = f" ({bar.ends})" if bar.ends else ""
            lines.append(f"{'':{MARGIN}}{bar.word:{wide}}  {cells}  {bar.value}{ends}")
        return self._labelled(block.label, lines, block.title)

    def _series(self, block: Series) -> list[str]:
        from stallwise.render.plot import sparkline  # few answers hold a time series

        drawn = sparkline(block.values, most=block.most)
        ends = f"{block.low} to {block.high}" if block.low else f"up to {block.high}" if block.high else ""
        return self.rows(block.label, [f"{block.name}  {drawn}  {ends}"], block.title)

    def _picture(self, block: Picture) -> list[str]:
        return ["", block.title, *block.drawn] if block.drawn else []

    def _group(self, block: Group) -> list[str]:
        """Its blocks one after the other; folded ones are a row each."""
        if all(isinstance(inner, Group) and inner.folded for inner in block.blocks):
            return self.rows(
                block.label, [_heading(inner) for inner in block.blocks if isinstance(inner, Group)], block.title
            )
        lines: list[str] = []
        for inner in block.blocks:
            found = self.block(inner)
            same = found and block.label and found[0].startswith(f"{block.label:{MARGIN}}") and lines
            lines += [f"{'':{MARGIN}}{found[0][MARGIN:]}", *found[1:]] if same else found
        return lines

    def _table(self, block: Table) -> list[str]:
        rows = [[plain(cell) for cell in row] for row in block.rows[: block.most or None]]
        if block.inline:
            return self.rows(block.label, [" · ".join(" ".join(row[:2]) for row in rows)], block.title)
        indent = MARGIN if block.label else GAP if block.title else 0
        places = _fitting(block, rows, self.width - indent)
        heads = [] if block.bare else [[column.head for column in block.columns]]
        widths = _widths(block.columns, [*heads, *rows], places, self.width - indent)
        places.sort(key=lambda i: _goes_on(block.columns[i], [row[i] for row in rows], widths[i]))
        lines = []
        for row in [*heads, *rows]:
            lines += [f"{'':{indent}}{line}" for line in _row(block.columns, row, places, widths)]
        if heads and any(heads[0][i] for i in places):
            lines[0] = self.dim(lines[0]) if not block.label else lines[0]
        left = len(block.rows) - len(rows)
        note = " ".join(part for part in (f"and {left} more." if left else "", plain(block.note)) if part)
        return self._labelled(block.label, lines + self._hanging(note, indent, indent), block.title)

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text

    def bad(self, text: str) -> str:
        """The thing to fix."""
        return self._wrap("1;31", text)

    def good(self, text: str) -> str:
        """Health."""
        return self._wrap("1;32", text)

    def doubt(self, text: str) -> str:
        """Neither."""
        return self._wrap("1;33", text)

    def dim(self, text: str) -> str:
        """What may be skipped."""
        return self._wrap("2", text)


def _heading(group: Group) -> str:
    badges = ", ".join(plain(badge) for badge in group.badges)
    return f"{group.title}  [{badges}]" if badges else group.title


def _quotes(text: str, where: str) -> bool:
    """True when the sentence holds the typed words that are its place, shortened or whole."""
    return where[:1] == QUOTES[0] and all(part.strip() in text for part in where.strip(QUOTES).split(CUT))


def _fitting(block: Table, rows: list[list[str]], room: int) -> list[int]:
    """The columns for which there is room: those that may be dropped go, the least important first."""
    places = list(block.filled)
    heads = [] if block.bare else [[column.head for column in block.columns]]
    while True:
        natural = {i: max(len(row[i]) for row in [*heads, *rows]) for i in places}
        droppable = [i for i in places if block.columns[i].drop]
        if sum(natural.values()) + GAP * (len(places) - 1) <= room or not droppable:
            return places
        places.remove(max(droppable, key=lambda i: (block.columns[i].drop, i)))


def _widths(columns: tuple[Column, ...], rows: list[list[str]], places: list[int], room: int) -> dict[int, int]:
    """Of the columns that stay: sentences take what is left, and the widest cell is cut where nothing else helps."""
    widths = {i: max(len(row[i]) for row in rows) for i in places}
    over = sum(widths.values()) + GAP * (len(places) - 1) - room
    for i in sorted(places, key=lambda i: (not columns[i].wraps, columns[i].right, -widths[i])):
        if over <= 0:
            break
        less = min(over, max(widths[i] - SHORTEST_CELL, 0))
        widths[i] -= less
        over -= less
    return widths


def _goes_on(column: Column, cells: list[str], width: int) -> bool:
    """A sentence that needs more than one line stands last, so that it reads on without a break."""
    return column.wraps and max(map(len, cells)) > width


def _row(columns: tuple[Column, ...], row: list[str], places: list[int], widths: dict[int, int]) -> list[str]:
    """One line, and those that its sentence needs below it."""
    cells = {i: _cell(row[i], widths[i], columns[i].wraps) for i in places}
    lines = []
    for at in range(max(map(len, cells.values()), default=0)):
        parts = [(i, cells[i][at] if at < len(cells[i]) else "") for i in places]
        lines.append(
            (" " * GAP).join(f"{t:>{widths[i]}}" if columns[i].right else f"{t:{widths[i]}}" for i, t in parts)
        )
    return [line.rstrip() for line in lines]


def _cell(text: str, width: int, wraps: bool) -> list[str]:
    if wraps:
        return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
    return [text if len(text) <= width else f"{text[: width - 1]}…"]
