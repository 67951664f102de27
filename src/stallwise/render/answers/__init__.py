"""Answers of all verbs as one HTML file each, in the style of the report: no network, nothing taken as markup.

A file here turns one kind of answer into a verdict and blocks; `page` lays them out. Blocks are tables, pictures, lists
and texts, in the order in which a reader needs them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallwise.render.document import document
from stallwise.render.pictures import Figure
from stallwise.render.verdict import Verdict

__all__ = ["Block", "Figure", "Grid", "Rows", "Text", "Verdict", "page"]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; columns named in `numbers` stand to the right, and rows whose number is in `best` stand out."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numbers: frozenset[int] = frozenset()
    note: str = ""
    best: frozenset[int] = frozenset()
    kind: str = "grid"


@dataclass(frozen=True, slots=True)
class Rows:
    """Sentences under a heading."""

    title: str
    rows: Sequence[str]
    kind: str = "rows"


@dataclass(frozen=True, slots=True)
class Text:
    """What the terminal shows, for those who want to copy it; folded."""

    title: str
    text: str
    kind: str = "text"


Block = Grid | Rows | Text | Figure


def page(
    verdict: Verdict, blocks: Sequence[Block | None], *, verb: str, subject: str, inputs: Sequence[str] = ()
) -> str:
    """The whole file."""
    return document(
        "answer.html",
        verdict=verdict,
        said_by=(),
        verb=verb,
        subject=f"{verb}: {subject}",
        inputs=list(inputs),
        blocks=[block for block in blocks if block is not None and _holds_something(block)],
    )


def _holds_something(block: Block) -> bool:
    return bool(block.text if isinstance(block, Text) else block.svg if isinstance(block, Figure) else block.rows)
