"""States of GPUs over time, from any table or log that prints them: which keys are which column of `gpu.samples`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import cast

import numpy as np

from stallwise.evidence.fact import Scope, Source, Table
from stallwise.evidence.reading import Rows
from stallwise.meaning.name import name
from stallwise.meaning.rows import named_columns
from stallwise.meaning.scopes import axis_of
from stallwise.meaning.words import book, words_of

KIND = "gpu.samples"
TELLING = {"power_w", "clock_sm_hz", "temperature_c"}  # without one of these it is no card's state
FEWEST = 3  # columns
_CARD = re.compile(r"\bgpu ?(\d{1,3})\b")


def _columns() -> dict[str, str]:
    """Quantities as a monitor prints them at one moment, and the columns of the table of samples that they are."""
    return cast(dict[str, str], book("samples.toml")["gpu"])


@lru_cache(maxsize=4096)
def is_wanted(key: str, unit: str) -> bool:
    """True for a key of a card's state, or of its number."""
    named = name((key,), unit)
    return axis_of(key) == "gpu" or (named is not None and named.quantity.name in _columns())


MOST_CARDS = 1e6  # a number beyond it is damage, and no card


def is_card(columns: set[str]) -> bool:
    """Whether these columns together are a state of a card."""
    return bool(columns & TELLING) and len(columns) >= FEWEST


def samples(rows: Rows, file: str) -> Iterator[Table]:
    """One table for each card that the rows tell of, whether a card is a row or has columns of its own."""
    by_card: dict[int | None, dict[str, list[float | str | None]]] = {}
    for column in named_columns(rows):
        title = _columns().get(column.named.quantity.name)
        if title is not None:
            by_card.setdefault(_card_in(column.label), {}).setdefault(title, column.values)
    for card, found in by_card.items():
        if is_card(set(found)):
            yield from _tables(rows, found, card, file)


def _card_in(title: str) -> int | None:
    """The card that a column speaks of: "gpu.3.powerWatts", "GPU 3 temp"."""
    numbered = _CARD.search(title)
    return int(numbered[1]) if numbered else None


def _tables(rows: Rows, found: dict[str, list[float | str | None]], card: int | None, file: str) -> Iterator[Table]:
    gpus = _axis(rows, "gpu") if card is None else None
    nodes = _axis(rows, "node")
    members: dict[tuple[object, object], list[int]] = {}
    for at in range(len(rows)):
        members.setdefault((nodes[at] if nodes else None, gpus[at] if gpus else float(card or 0)), []).append(at)
    for (node, gpu), own in members.items():
        columns = {
            title: np.array([v if isinstance(v := values[at], float) else np.nan for at in own])
            for title, values in found.items()
        }
        number = int(gpu) if isinstance(gpu, float) and abs(gpu) < MOST_CARDS else 0
        scope = Scope(gpu=number, node=str(node) if node is not None else None)
        source = Source(file, f"{rows.noun}s {rows.places[own[0]]}-{rows.places[own[-1]]}")
        yield Table(
            KIND, {"time_s": np.arange(len(own), dtype=float), **columns}, source, scope, {"name": "", "bus_id": ""}
        )


def _axis(rows: Rows, kind: str) -> list[object] | None:
    for title, cells in zip(rows.columns, rows.cells, strict=True):
        if axis_of(title) == kind or (kind == "gpu" and words_of(title) == ("gpu",)):
            return list(cells)
    return None
