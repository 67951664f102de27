"""States of engines and of cards over time, from any table or log that prints them: which keys are which column (samples.toml)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import cast

from stallwise.evidence.fact import Scope, Source, Table
from stallwise.evidence.gpu_load import SAMPLES
from stallwise.evidence.reading import Rows
from stallwise.late import np
from stallwise.readers.text.name import Name, name
from stallwise.readers.text.rows import Column, named_columns
from stallwise.readers.text.scopes import axis_of
from stallwise.readers.text.words import word_table, words_of

# A line is a sample of an engine when it says how much runs or waits, and how fast or how full it is.
STATES = {"running", "waiting"}
MEASURES = {"kv_share", "prompt_token_per_s", "generation_token_per_s"}
CARD_COLUMNS = {"power_w", "clock_sm_hz", "temperature_c"}  # without one of these it is no card's state
FEWEST = 3  # columns
MOST_CARDS = 1024  # more values are no cards
MOST_ON_NODE = 16  # rows that differ all: one sample of each card of a node, else they are counted by something else
LOOKED_AT = 20  # rows
AMD = "AMD GPU"
_OF_ROCM = re.compile(r"card\d{1,3}")  # as rocm-smi and amd-smi call cards, and no tool of another maker
CARD_TITLES = {("gpu",), ("device",), ("card",), ("gpu", "name"), ("card", "id")}
_CARD = re.compile(r"\bgpu ?(\d{1,3})\b")
_INSIDE = re.compile(r"(?i)^((?:gpu|card|device|cuda))[ _:.-]?(\d{1,3})(?=[ _:.-])")
_NUMBERED = re.compile(r"(?i)(?:gpu|card|cuda|hip|device|nvidia)?[ _:.-]?(\d{1,3})")


def columns_of(kind: str) -> dict[str, str]:
    """Quantities as an engine or a gpu tells them at one moment, and the columns of the table of samples that they are."""
    return cast(dict[str, str], word_table("samples.toml")[kind])


@lru_cache(maxsize=4096)
def engine_column(key: str, unit: str) -> tuple[str, Name] | None:
    """The column that a key of an engine's line is, and how its number is scaled."""
    words = key.split(". ")[-1].lstrip("# ")  # "Decode batch. #running-req"
    named = name((words,), unit)
    column = columns_of("engine").get(named.quantity.name) if named is not None else None
    return (column, named) if column is not None and named is not None else None


def is_engine(columns: set[str]) -> bool:
    """Whether these columns together are a state of an engine."""
    return bool(columns & STATES) and bool(columns & MEASURES)


@lru_cache(maxsize=4096)
def is_card_key(key: str, unit: str) -> bool:
    """True for a key of a card's state, or of its number."""
    named = name((key,), unit)
    return axis_of(key) == "gpu" or (named is not None and named.quantity.name in columns_of("gpu"))


def cards(rows: Rows, file: str) -> Iterator[Table]:
    """One table for each card that the rows tell of, whether a card is a row or has columns of its own."""
    whose = _whose(rows)
    by_card: dict[int | None, dict[str, np.ndarray]] = {}
    for card, column in [(_card_in(c.label), c) for c in named_columns(rows)] + _numbered(rows):
        title = columns_of("gpu").get(column.named.quantity.name)
        if title is not None:
            by_card.setdefault(card, {}).setdefault(title, column.numbers)
    several = whose is not None or len(by_card.keys() - {None}) > 1
    for card, found in by_card.items():
        if found.keys() & (CARD_COLUMNS | {"utilisation_share"} if several else CARD_COLUMNS) and (
            several or len(found) >= FEWEST
        ):
            yield from _tables(rows, found, card, whose if card is None else None, file)


def _card_in(title: str) -> int | None:
    """The card that a column speaks of: "gpu.3.powerWatts", "GPU 3 temp"."""
    numbered = _CARD.search(title)
    return int(numbered[1]) if numbered else None


def _numbered(rows: Rows) -> list[tuple[int | None, Column]]:
    """Columns with the number of a card inside their name ("gpu_0_util"), which keeps them from being known."""
    found: list[tuple[int | None, Column]] = []
    for title, cells in zip(rows.columns, rows.cells, strict=True):
        if numbered := _INSIDE.search(title):
            base = Rows((_INSIDE.sub(r"\1", title),), (cells,), rows.places, noun=rows.noun)
            found += [(int(numbered[2]), column) for column in named_columns(base)]
    return found


def _whose(rows: Rows) -> list[int | None] | None:
    """The card of each row, where a column says it: by number ("card3", "cuda:3", 3) or by its name."""
    for title, cells in zip(rows.columns, rows.cells, strict=True):
        if not (axis_of(title) == "gpu" or words_of(title) in CARD_TITLES):
            continue
        texts = list(
            dict.fromkeys("" if c is None else f"{c:g}" if isinstance(c, float) else str(c).strip() for c in cells)
        )
        known = {text: _NUMBERED.fullmatch(text) for text in texts if text}
        if not known or len(known) > min(MOST_CARDS, len(rows)) or len(known) == len(rows) > MOST_ON_NODE:
            continue
        number = {t: int(m[1]) if (m := known[t]) else at for at, t in enumerate(known)}
        return [number.get("" if c is None else f"{c:g}" if isinstance(c, float) else str(c).strip()) for c in cells]
    return None


def _tables(
    rows: Rows, found: dict[str, np.ndarray], card: int | None, whose: list[int | None] | None, file: str
) -> Iterator[Table]:
    nodes = _axis(rows, "node")
    amd = whose is not None and any(
        isinstance(c, str) and _OF_ROCM.fullmatch(c) for cells in rows.cells for c in cells[:LOOKED_AT]
    )
    members: dict[tuple[object, int], list[int]] = {}
    for at in range(len(rows)):
        own = (card or 0) if whose is None else whose[at]
        if own is not None:
            members.setdefault((nodes[at] if nodes else None, own), []).append(at)
    for (node, gpu), own_rows in members.items():
        columns = {
            "time_s": np.arange(len(own_rows), dtype=float),
            **{title: column[own_rows] for title, column in found.items()},
        }
        scope = Scope(gpu=gpu, node=str(node) if node is not None else None)
        source = Source(file, f"{rows.noun}s {rows.places[own_rows[0]]}-{rows.places[own_rows[-1]]}")
        yield Table(SAMPLES, columns, source, scope, {"name": AMD if amd else "", "bus_id": ""})


def _axis(rows: Rows, kind: str) -> list[object] | None:
    at = next((i for i, title in enumerate(rows.columns) if axis_of(title) == kind), None)
    return None if at is None else list(rows.cells[at])
