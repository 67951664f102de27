"""What readers hand over without a meaning: logs and tables of steps, and the settings that stand beside them."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.evidence.reading import Printed, Reading, Rows
from stallwise.readers.text.logged_series import named
from stallwise.readers.text.name import name
from stallwise.readers.text.samples import cards
from stallwise.readers.text.series import table_series
from stallwise.readers.text.value import in_si, plausible
from stallwise.units import Unit

SURE = 1.0  # of a setting: all its words are the quantity's


def understood_steps(shape: Printed | Rows | Reading, file: str, *, with_cards: bool = True) -> Iterator[Item]:
    """Series, their middles, and settings; tables of cards, unless a reader of them was there."""
    if isinstance(shape, Printed):
        yield from named(shape)
    elif isinstance(shape, Rows):
        of_cards = list(cards(shape, file)) if with_cards else []
        yield from of_cards
        if len({table.scope for table in of_cards}) > 1:
            return  # rows of several cards are no course
        found = list(table_series(shape, file))
        yield from found
        yield from _settings(shape, file) if found else ()
    else:
        yield from _setting(shape.path, shape.value, file)


def _settings(rows: Rows, file: str) -> Iterator[Fact]:
    """A column that says the same word in every row."""
    for at, title in enumerate(rows.columns):
        words = {c for c in rows.cells[at] if isinstance(c, str)} if rows.numbers(at) is None else set()
        if len(words) == 1 and (word := words.pop()).strip():
            yield from _setting((*rows.path, title), word, file)


def _setting(path: tuple[str, ...], value: float | str | bool, file: str) -> Iterator[Fact]:
    found = name(path, "", isinstance(value, str))
    if found is None or found.score < SURE or isinstance(value, bool):
        return
    if isinstance(value, str):
        if found.quantity.unit is Unit.TEXT:
            yield Fact(found.quantity, value.lower(), Source(file, path[-1]))
    elif value > 0 and plausible(found.quantity, number := in_si(found, value)):
        yield Fact(found.quantity, number, Source(file, path[-1]))
