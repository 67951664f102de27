"""A document as Markdown, for issues, pull requests and step summaries; nothing from the input is taken as markup."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from stallwise.render.blocks import (
    Bars,
    Block,
    Code,
    Depth,
    Document,
    Facts,
    Group,
    Note,
    Series,
    Steps,
    Table,
    plain,
)
from stallwise.render.documents import document_of
from stallwise.render.plot import sparkline
from stallwise.units import Unit, show

BAR_CELLS = 24
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")


def to_markdown(answer: object, **options: Any) -> str:
    """A document, or an answer that has one: all but what only the page can show."""
    document = answer if isinstance(answer, Document) else document_of(answer, **options)
    v = document.verdict
    lines = [f"# {escaped(v.line)}", ""]
    for words, mark in ((v.why, ""), (v.worth, ""), (v.do, "**"), (v.tail, "*")):
        lines += [f"{mark}{escaped(plain(words))}{mark}", ""] if plain(words) else []
    for block in document.down_to(Depth.REPORT).blocks:
        lines += _block(block, 2)
    inputs = f"; read: {', '.join(map(escaped, document.inputs))}" if document.inputs else ""
    about = f"{escaped(document.subject)}{inputs}" if document.subject else inputs.removeprefix("; ")
    return "\n".join([*lines, *([f"<sub>{about}</sub>", ""] if about else [])])


def escaped(text: str) -> str:
    """Words that Markdown and HTML take as words."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("\\<", "&lt;").replace("\\>", "&gt;")


def _block(block: Block, level: int) -> list[str]:
    way = WAYS.get(type(block))
    body = way(block, level) if way else []
    return [*_heading(block.title, level), *body, ""] if body else []


def _heading(title: str, level: int) -> list[str]:
    return [f"{'#' * level} {escaped(title)}", ""] if title else []


def _steps(block: Steps, level: int) -> list[str]:
    rows = [escaped(plain(line.text)) + (f" ({escaped(line.places)})" if line.places else "") for line in block.lines]
    return [f"{f'{n}.' if block.ordered else '-'} {row}" for n, row in enumerate(rows, 1)]


def _facts(block: Facts, level: int) -> list[str]:
    return [f"- {escaped(name)}: {escaped(plain(words))}" for name, words in block.rows]


def _table(block: Table, level: int) -> list[str]:
    places = block.filled
    rows = [[escaped(plain(row[i])) for i in places] for row in block.rows]
    rules = ["---:" if block.columns[i].right else "---" for i in places]
    note = ["", escaped(plain(block.note))] if plain(block.note) else []
    return [*_rows([[escaped(block.columns[i].head) for i in places], rules, *rows]), *note]


def _rows(rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in rows]


def _bars(block: Bars, level: int) -> list[str]:
    rows = [["category", "", "time", "share", "what it is"], ["---", "---", "---:", "---:", "---"]]
    for bar in block.bars:
        value = f"{bar.value} ({bar.ends})" if bar.ends else str(bar.value)
        cells = "█" * max(1, round(BAR_CELLS * bar.share))
        rows.append([escaped(bar.word), cells, value, show(bar.share, Unit.SHARE), escaped(bar.meaning)])
    notes = [escaped(text) for text in (block.basis, plain(block.note)) if text]
    return [*_rows(rows), *(line for note in notes for line in ("", note))]


def _series(block: Series, level: int) -> list[str]:
    drawn = sparkline(block.values, most=block.most)
    ends = f"{block.low} to {block.high}" if block.low else f"up to {block.high}" if block.high else ""
    return [f"{escaped(block.name)} `{drawn}` {ends}"]


def _note(block: Note, level: int) -> list[str]:
    text = escaped(plain(block.text))
    return [f"> **{escaped(block.title)}.** {text}" if block.warns else text]


def _code(block: Code, level: int) -> list[str]:
    fence = "`" * max(3, max((len(m) + 1 for m in re.findall("`+", block.code)), default=3))
    lead = [f"{escaped(block.lead)}:", ""] if block.lead else []
    return [*lead, f"{fence}sh", block.code, fence]


def _group(block: Group, level: int) -> list[str]:
    lines: list[str] = []
    for inner in block.blocks:
        if isinstance(inner, Group) and inner.folded:
            badges = ", ".join(escaped(plain(badge)) for badge in inner.badges)
            lines.append(f"- **{escaped(inner.title)}**" + (f" ({badges})" if badges else ""))
        elif isinstance(inner, Note) and inner.warns:
            lines += [*_note(inner, level), ""]
        else:
            lines += _block(inner, level + 1 if block.title else level)
    return lines


WAYS: dict[type, Callable[[Any, int], list[str]]] = {
    Steps: _steps, Facts: _facts, Table: _table, Bars: _bars, Series: _series, Note: _note, Code: _code, Group: _group,
}  # fmt: skip
