"""The lexicon: every quantity that a key may name, with its words, direction and whole (lexicon/*.toml)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from stallwise.evidence.catalog import quantities
from stallwise.evidence.quantity import Quantity
from stallwise.readers.text.tables import tables_in
from stallwise.readers.text.words import classed, listed, words_of
from stallwise.tables import parsed
from stallwise.units import Unit


@dataclass(frozen=True, slots=True)
class Entry:
    """One quantity of the lexicon."""

    quantity: Quantity
    phrases: tuple[frozenset[str], ...]
    better: str = ""  # lower or higher
    whole: str = ""  # the quantity of which this is a part
    tail: str = ""  # the quantity of its 99th percentile
    expected: str = ""  # the quantity of what was hoped for
    limit: str = ""  # the quantity of the most it can be: "250 W of 700 W"
    symptom: str = ""  # what people complain of when it is worse than it was


@cache
def entries() -> dict[str, Entry]:
    """By name of the quantity: what the tables say, then the catalogue's own names for what they leave out."""
    known, derived = quantities(), listed("classes.toml", "derived", "families")
    found: dict[str, Entry] = {}
    for _, text in tables_in("lexicon"):
        for name, row in _rows(parsed(text)):
            more = {key: value for key, value in row.items() if key not in ("words", "exact", "unit")}
            found[name] = Entry(known[name], _phrases(row["words"], row.get("exact", False)), **more)
    for name, quantity in known.items():
        family, dot, rest = name.partition(".")
        if name not in found and not (dot and family in derived) and quantity.unit is not Unit.TEXT:
            own = [w for w in [rest.replace("_", " ") or name.replace("_", " ")] if _stands(w)]
            found[name] = Entry(quantity, _phrases([*own, *quantity.aliases]))
    return found


def _stands(written: str) -> bool:
    """ "requests done" says no more than requests once the empty word is gone, and those are anybody's."""
    return len(classed(words_of(written))) > 1 or len(words_of(written)) == 1


def _rows(data: dict[str, Any], above: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for key, value in data.items():
        if "words" in value:
            yield above + key, value
        else:
            yield from _rows(value, f"{above}{key}.")


def _phrases(written: list[str], exact: bool = False) -> tuple[frozenset[str], ...]:
    """Phrases as classes; a rate is a throughput too, but where an entry tells them apart."""
    found = [p for text in written if (p := classed(words_of(text)))]
    if not exact:
        found += [p - {"rate"} | {"throughput"} for p in found if "rate" in p]
    return tuple(dict.fromkeys(found))


@cache
def weights() -> dict[str, float]:
    """Rare words weigh more: the logarithm of how many quantities there are over how many use the word."""
    uses: dict[str, set[str]] = defaultdict(set)
    for name, entry in entries().items():
        for phrase in entry.phrases:
            for word in phrase:
                uses[word].add(name)
    total = len(entries())
    return {word: math.log(1.0 + total / len(names)) for word, names in uses.items()}


@cache
def by_word() -> dict[str, tuple[tuple[Entry, frozenset[str]], ...]]:
    """Phrases by each of their words."""
    found: dict[str, list[tuple[Entry, frozenset[str]]]] = defaultdict(list)
    for entry in entries().values():
        for phrase in entry.phrases:
            for word in phrase:
                found[word].append((entry, phrase))
    return {word: tuple(pairs) for word, pairs in found.items()}
