"""Incidents by cause: every module here plants faults of one kind; how they are told and what is asked stands in plots.tsv."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from stallwise.drill import rows
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import Decisive, Exhibit, Plot
from stallwise.units import Unit

Author = Callable[[Rng], Plot]
_PLANTED: dict[str, list[Author]] = {}


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a generator makes: the number that settles it, the files, and words of the setup."""

    value: float
    exhibits: tuple[Exhibit, ...]
    words: Mapping[str, Any]
    also: tuple[str, ...] = ()  # further faults, smaller than the first
    gpu_use: int = 98  # percent that nvidia-smi would show


def drawn(value: float, *exhibits: Exhibit, also: tuple[str, ...] = (), gpu_use: int = 98, **words: Any) -> Drawn:
    """From a generator, with the words that its setup names."""
    return Drawn(value, exhibits, words, also, gpu_use)


@cache
def plots() -> dict[str, dict[str, str]]:
    """How incidents are told, by the name of their generator."""
    return {row["name"]: row for row in rows("scenarios/plots.tsv")}


def planted(cause: str, name: str = "") -> Callable[[Callable[[Rng], Drawn]], Callable[[Rng], Drawn]]:
    """Marks a generator of incidents whose first cause is this one; its texts stand under its name."""

    def keep(write: Callable[[Rng], Drawn]) -> Callable[[Rng], Drawn]:
        called = name or write.__name__

        def author(rng: Rng) -> Plot:
            row, made = plots()[called], write(rng)
            shared = plots().get(row["setup"], row)
            draws = [draw.split(" = ") for draw in (shared["draw"] or row["draw"]).split("; ") if draw]
            words = {word: _draw(rng, choice) for word, choice in draws} | dict(made.words)
            asked = Decisive(row["ask"], made.value, Unit(row["unit"]), float(row["within"]))
            return Plot(shared["setup"].format(**words), made.exhibits, asked, made.also, made.gpu_use)

        author.__name__ = called
        keep_author(cause, author)
        return write

    return keep


def keep_author(cause: str, author: Author) -> None:
    """Adds a generator whose texts are its own."""
    _PLANTED.setdefault(cause, []).append(author)


def _draw(rng: Rng, choice: str) -> float | str:
    """ "3..9" is a number from this range, "a | b" one of these."""
    low, between, high = choice.partition("..")
    if not between:
        return rng.pick(*choice.split(" | "))
    return rng.between(float(low), float(high)) if "." in low else rng.whole(int(low), int(high))


@cache
def authors() -> dict[str, tuple[Author, ...]]:
    """All generators by the cause they plant."""
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_")):
        import_module(f"{__name__}.{module}")
    return {cause: tuple(_PLANTED[cause]) for cause in sorted(_PLANTED)}
