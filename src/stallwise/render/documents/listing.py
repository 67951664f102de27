"""A list of what there is: causes, formats, words for facts, models, formulas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stallwise.render.blocks import Column, Document, Table, Verdict, Words, table
from stallwise.render.blocks import document as filled


def document(
    says: str,
    head: Sequence[Column],
    rows: Iterable[Sequence[Words]],
    *,
    verb: str,
    title: str = "",
    deep: bool = False,
) -> Document:
    """How many there are, then each."""
    return filled(Verdict(says), table(title, head, rows), verb=verb)


def grouped(says: str, tables: Iterable[Table], *, verb: str, deep: bool = False) -> Document:
    """The same under several headings."""
    return filled(Verdict(says), *tables, verb=verb)
