"""The lines in which an engine or a monitor prints its state, whatever program it is: tables of samples."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Item
from stallwise.evidence.number_columns import Column
from stallwise.evidence.reading import Cell, Rows
from stallwise.readers.records.engine_samples import Samples, merged
from stallwise.readers.shapes.clock import clocks_at
from stallwise.readers.shapes.logged import records
from stallwise.readers.text.samples import cards, engine_column, is_card_key, is_engine
from stallwise.readers.text.value import all_in_si


def engine_samples(artifact: Artifact) -> Iterator[Item]:
    """A table of all lines that say how much runs or waits and how fast or how full it is."""
    found: list[Samples] = []
    for lines in records(artifact.skeletons, lambda key, unit, bare: not bare and engine_column(key, unit) is not None):
        named = [engine_column(key.key, key.unit) for key in lines.like.keys]
        if not is_engine({n[0] for n in named if n}):
            continue
        columns: dict[str, Column] = {}
        for one, numbers in zip(named, lines.values.T, strict=True):
            if one is not None and one[0] not in columns:
                columns[one[0]] = all_in_si(one[1], numbers)
        found.append(Samples(lines.lines, columns))
    clocks = clocks_at(artifact.skeletons, [at for s in found for at in s.lines])
    table = merged(artifact.name, "", found, clocks)
    if table is not None:
        yield table


def card_samples(artifact: Artifact) -> Iterator[Item]:
    """Tables of the lines that say how fast, hot or hungry a card is."""
    for lines in records(artifact.skeletons, lambda key, unit, bare: not bare and is_card_key(key, unit)):
        cells: tuple[list[Cell], ...] = tuple(
            [f"{v} {key.unit}" if key.unit else v for v in values.tolist()]
            for key, values in zip(lines.like.keys, lines.values.T, strict=True)
        )
        titles = tuple(key.key for key in lines.like.keys)
        yield from cards(Rows(titles, cells, [at + 1 for at in lines.lines]), artifact.name)
