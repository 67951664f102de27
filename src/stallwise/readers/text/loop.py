"""What a key of a training loop measures: its lines, its tables, its scalars (loop.toml)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from stallwise.evidence.catalog import quantities
from stallwise.evidence.quantity import Quantity
from stallwise.readers.text.name import Name, without_unit
from stallwise.readers.text.scopes import axis_of
from stallwise.readers.text.words import classed, word_table, words_of
from stallwise.units import Unit, readings_of

MOST_WORDS = 9  # longer keys are sentences
EXACT, PLAIN, OTHER = 1.1, 1.0, 0.5  # scores: of several keys of one quantity the plain ones count
_SHORT = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9}
_BINARY = {"k": 2.0**10, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30}
_TIMES = frozenset({"time", "wait"})  # classes
OF_EVALUATIONS = ("run.eval_loss", "stage.evaluation")
_SYMBOL = 4  # letters: longer words after a number begin the next key


@dataclass(frozen=True, slots=True)
class Column:
    """One row of the table."""

    quantity: Quantity
    has: tuple[frozenset[str], ...]
    raw: tuple[frozenset[str], ...]
    only: frozenset[str]
    last: tuple[tuple[str, ...], ...]
    never: tuple[tuple[str, ...], ...]
    unless: frozenset[str]
    timed: bool
    shared: bool
    inverse: bool


@cache
def columns() -> tuple[Column, ...]:
    """As the file orders them."""
    known = quantities()
    return tuple(
        Column(
            known[r["of"]], tuple(_classes(words_of(p)) for p in r.get("has", ())),
            tuple(frozenset(words_of(p)) for p in r.get("raw", ())),
            frozenset(" ".join(words_of(p)) for p in r.get("only", ())), tuple(words_of(p) for p in r.get("last", ())),
            tuple(words_of(p) for p in r.get("never", ())),
            frozenset(r.get("unless", ())), r.get("timed", False), r.get("shared", False), r.get("inverse", False),
        )
        for r in word_table("loop.toml")["column"]
    )  # fmt: skip


def _classes(words: tuple[str, ...]) -> frozenset[str]:
    """Of every word, also of those that say nothing elsewhere."""
    return frozenset(c for w in words for c in classed((w,)))


@lru_cache(maxsize=1 << 14)
def column_of(key: str, unit: str = "", around: frozenset[str] = frozenset()) -> Name | None:
    """The quantity of a key with the unit printed after its value; None for a stranger. `around`: words before the key."""
    words = words_of(key)
    if not words or len(words) > MOST_WORDS or axis_of(key) == "step":
        return None
    naming, own = without_unit(key)
    printed = () if unit in _SHORT and own else readings_of(unit)
    units = printed or readings_of(own)
    found = _fitting(words, naming, around, {u for u, _ in units})
    if found is None:
        return None
    column, score = found
    quantity = column.quantity
    if "evaluation" in _classes(words) and quantity.name not in OF_EVALUATIONS:
        return None  # "eval_steps_per_second" is no pace of training
    if column.inverse:
        return Name(quantity, _SHORT.get(unit, 1.0), inverse=True, score=score, unit_known=True)
    if quantity.unit is Unit.RATIO:  # what follows a loss is the next key
        return Name(quantity, 1.0, score=score)
    factor = _factor(quantity, units) or _factor(quantity, [r for w in words for r in readings_of(w) if len(w) > 1])
    if factor is None and readings_of(unit) and len(unit) <= _SYMBOL and unit not in _SHORT:
        return None  # a number of another dimension can never be it
    if quantity.unit is Unit.BYTE and factor is None:
        factor = _BINARY.get(unit)
    elif not printed:
        factor = (factor or 1.0) * _SHORT[unit] if unit in _SHORT else factor
    return Name(quantity, factor or 1.0, score=score, unit_known=factor is not None)


def _factor(quantity: Quantity, units: Iterable[tuple[Unit | None, float]]) -> float | None:
    kin = (quantity.unit, Unit.RATIO) if quantity.unit is Unit.SHARE else (quantity.unit,)
    return next((f for u, f in units if u in kin), None)


def _fitting(
    words: tuple[str, ...], naming: tuple[str, ...], around: frozenset[str], dims: set[Unit | None]
) -> tuple[Column, float] | None:
    bag, kinds = frozenset(words), _classes(words)
    timed = bool(kinds & _TIMES) or bool(dims & {Unit.SECOND, None})
    shared = Unit.SHARE in dims or "share" in kinds
    for column in columns():
        exact = " ".join(words) in column.only or " ".join(naming) in column.only
        if not exact:
            if (bag | around) & column.unless or any(words[-len(t) :] == t for t in column.never):
                continue
            if (column.timed and (shared or not timed)) or (column.shared and not shared):
                continue
            if not any(p <= kinds for p in column.has) and not any(p <= bag for p in column.raw):
                continue
        plain = exact or not column.last or any(words[-len(t) :] == t for t in column.last)
        return column, EXACT if exact else PLAIN if plain else OTHER
    return None


@lru_cache(maxsize=1 << 14)
def printed(key: str, unit: str, bare: bool = False) -> Name | None:
    """The same in a line of a log. `bare`: no sign stands between key and number, so it must be well known or have a unit."""
    table = _lines()
    meaning, parts = table["means"].get(key.lower(), key), key.split(" ")
    found = column_of(meaning, unit)
    for cut in range(1, len(parts)):  # words of the sentence before the key
        found = found or column_of(" ".join(parts[cut:]), unit, frozenset(words_of(" ".join(parts[:cut]))))
    if bare and found is not None and " ".join(words_of(parts[-1])) not in table["bare"] and "_" not in parts[-1]:
        return found if found.unit_known else None
    return found


@cache
def _lines() -> dict[str, Any]:
    return dict(word_table("loop.toml")["line"])
