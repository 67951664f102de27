"""The words people use for facts: names, aliases, values with units, and what they may have meant instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from stallwise.errors import BadRequest
from stallwise.evidence.catalog import quantities
from stallwise.evidence.catalog.change import PART_SHARE
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import STATED, WHOLE, Fact, Scope, Series, Source
from stallwise.evidence.flags import flag_of
from stallwise.evidence.quantity import Quantity
from stallwise.late import np
from stallwise.units import Unit, example, parse

BEFORE = "before"
SMALLEST_FLOP_RATE = 1e6  # FLOP/s: no GPU is measured below
_BEFORE_WORDS = {"before", "good", "baseline", "was"}


@cache
def _words() -> dict[str, Quantity]:
    """Every spelling of every quantity, plain. What people say of a run beats counters of one kernel or trace."""
    bare_names = [q for q in quantities().values() if q.name.startswith("run.") or "." not in q.name]
    counted = [q for q in quantities().values() if q not in bare_names]
    found: dict[str, Quantity] = {}
    for group in (bare_names, counted):
        for quantity in group:
            if "." not in quantity.name:
                found.setdefault(_plain(quantity.name), quantity)
        for quantity in group:
            for alias in quantity.aliases:
                found.setdefault(_plain(alias), quantity)
        for quantity in group:  # "run.step_time" also as run_step_time and, where free, as step_time
            found.setdefault(_plain(quantity.name), quantity)
            found.setdefault(_plain(quantity.name.split(".", 1)[-1]), quantity)
    return found


def _plain(word: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", word.lower()).strip("_")


def find(word: str) -> Quantity | None:
    """The quantity that this word means, or None."""
    return quantities().get(word) or _words().get(_plain(word))


def suggestions(word: str) -> list[str]:
    """Known words near this one."""
    from difflib import get_close_matches

    close = get_close_matches(_plain(word), list(_words()), n=3, cutoff=0.6)
    return list(dict.fromkeys(_short(_words()[c]) for c in close))


def _short(quantity: Quantity) -> str:
    return quantity.aliases[0] if quantity.name.startswith("run.") and quantity.aliases else quantity.name


def resolve(key: str) -> tuple[Quantity, Scope, float | None]:
    """`mfu.before` and `allreduce_time@64` into quantity, scope and place; raises with a suggestion when unknown."""
    name, _, place = key.partition("@")
    scope = WHOLE
    quantity = find(name)
    if quantity is None and "." in name:
        head, _, tail = name.rpartition(".")
        if tail.lower() in _BEFORE_WORDS:
            quantity, scope = find(head), Scope(run=BEFORE)
    if quantity is None:
        close = suggestions(name.rsplit(".", 1)[0] if name.endswith(tuple(f".{w}" for w in _BEFORE_WORDS)) else name)
        hint = f"did you mean {' or '.join(close)}?" if close else "stallwise facts lists the words"
        raise BadRequest(f"no fact is called '{key}'", hint=hint)
    return quantity, scope, float(place) if place else None


def value_of(quantity: Quantity, value: Any) -> float | str:
    """What was typed, in SI; forgiving about percent signs and yes and no."""
    if quantity.unit is Unit.TEXT:
        return str(value).strip()
    if quantity.unit is Unit.FLAG:
        return _flag(quantity, value)
    if isinstance(value, bool):
        return float(value)
    try:
        number = parse(value, quantity.unit)
    except BadRequest as error:
        raise BadRequest(f"{quantity.name}: {error.problem}", hint=f"write it like {example(quantity.unit)}") from error
    if quantity.unit is Unit.SHARE and number > 1.5:
        return number / 100.0  # "22" for 22%
    if quantity.unit is Unit.FLOP_PER_S and 0 < number < SMALLEST_FLOP_RATE:
        return number * 1e12  # "tflops=180": nothing else is possible
    return number


def _flag(quantity: Quantity, value: Any) -> float:
    flag = flag_of(value)
    if flag is None:
        raise BadRequest(f"{quantity.name} is yes or no, not '{value}'", hint=f"{quantity.name}=yes")
    return flag


def stated_items(pairs: Mapping[str, Any], source: Source = STATED, scope: Scope = WHOLE) -> Iterator[Item]:
    """Facts and series of what was stated; a table {64 = "45ms", 128 = "52ms"} or a list is a series."""
    points: dict[tuple[Quantity, Scope], list[tuple[float, float]]] = {}
    for key, value in pairs.items():
        quantity, own, place = resolve(key)
        own = own if own.to_dict() else scope
        if isinstance(value, Mapping):
            points.setdefault((quantity, own), []).extend(
                (float(k), float(value_of(quantity, v))) for k, v in value.items() if _is_float(k)
            )
        elif quantity.unit is Unit.COUNT and isinstance(value, list) and all(isinstance(v, Mapping) for v in value):
            yield Fact(quantity, float(len(value)), Source(source.file, source.where or key, source.stated), own)
        elif isinstance(value, list):
            points.setdefault((quantity, own), []).extend(
                (float(i), float(value_of(quantity, v))) for i, v in enumerate(value)
            )
        elif place is not None:
            points.setdefault((quantity, own), []).append((place, float(value_of(quantity, value))))
        else:
            where = Source(source.file, source.where or key, source.stated)
            if quantity.unit is Unit.SECOND and (share := _share(value)) is not None:  # "45%" of the step
                yield Fact(PART_SHARE, share, where, replace(own, layer=quantity.name))
            else:
                yield Fact(quantity, value_of(quantity, value), where, own)
    for (quantity, own), pairs_of in points.items():
        if not pairs_of:
            raise BadRequest(
                f"{quantity.name} is an empty table or list", hint=f"write it like {example(quantity.unit)}"
            )
        xs, values = zip(*sorted(pairs_of), strict=True)
        yield Series(
            quantity,
            np.array(xs),
            np.array(values),
            Source(source.file, quantity.name, source.stated),
            own,
            over="place",
        )


def _share(value: Any) -> float | None:
    """What "45%" says of a time: a part of the whole."""
    text = str(value).strip()
    return float(text[:-1]) / 100.0 if text.endswith("%") and _is_float(text[:-1]) else None


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
