"""States of engines and of cards over time, from any table or log that prints them: which keys are which column (samples.toml)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import cast

from stallwise.evidence.fact import Scope, Source, Table
from stallwise.evidence.reading import Rows
from stallwise.late import np
from stallwise.readers.text.name import Name, name
from stallwise.readers.text.rows import named_columns
from stallwise.readers.text.scopes import axis_of
from stallwise.readers.text.words import word_table, words_of

KIND = "gpu.samples"
# A line is a sample of an engine when it says how much runs or waits, and how fast or how full it is.
STATES = {"running", "waiting"}
MEASURES = {"kv_share", "prompt_token_per_s", "generation_token_per_s"}
CARD_COLUMNS = {"power_w", "clock_sm_hz", "temperature_c"}  # without one of these it is no card's state
FEWEST = 3  # columns
MOST_CARDS = 1e6  # a number beyond it is damage, and no card
_CARD = re.compile(r"\bgpu ?(\d{1,3})\b")


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
    by_card: dict[int | None, dict[str, np.ndarray]] = {}
    for column in named_columns(rows):
        title = columns_of("gpu").get(column.named.quantity.name)
        if title is not None:
            by_card.setdefault(_card_in(column.label), {}).setdefault(title, column.numbers)
    for card, found in by_card.items():
        if found.keys() & CARD_COLUMNS and len(found) >= FEWEST:
            yield from _tables(rows, found, card, file)


def _card_in(title: str) -> int | None:
    """The card that a column speaks of: "gpu.3.powerWatts", "GPU 3 temp"."""
    numbered = _CARD.search(title)
    return int(numbered[1]) if numbered else None


def _tables(rows: Rows, found: dict[str, np.ndarray], card: int | None, file: str) -> Iterator[Table]:
    gpus = _axis(rows, "gpu") if card is None else None
    nodes = _axis(rows, "node")
    members: dict[tuple[object, object], list[int]] = {}
    for at in range(len(rows)):
        members.setdefault((nodes[at] if nodes else None, gpus[at] if gpus else float(card or 0)), []).append(at)
    for (node, gpu), own in members.items():
        columns = {
            "time_s": np.arange(len(own), dtype=float),
            **{title: column[own] for title, column in found.items()},
        }
        number = int(gpu) if isinstance(gpu, float) and abs(gpu) < MOST_CARDS else 0
        scope = Scope(gpu=number, node=str(node) if node is not None else None)
        source = Source(file, f"{rows.noun}s {rows.places[own[0]]}-{rows.places[own[-1]]}")
        yield Table(KIND, columns, source, scope, {"name": "", "bus_id": ""})


def _axis(rows: Rows, kind: str) -> list[object] | None:
    for title, cells in zip(rows.columns, rows.cells, strict=True):
        if axis_of(title) == kind or (kind == "gpu" and words_of(title) == ("gpu",)):
            return list(cells)
    return None
