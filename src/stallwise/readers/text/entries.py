"""The lexicon: every quantity that a key may name, by the phrases that the catalogue has for it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from stallwise.evidence.catalog import quantities
from stallwise.evidence.quantity import Quantity
from stallwise.readers.text.words import classed, listed, words_of
from stallwise.units import Unit


@dataclass(frozen=True, slots=True)
class Entry:
    """One quantity and its phrases, cut into classes of words."""

    quantity: Quantity
    phrases: tuple[frozenset[str], ...]


@cache
def entries() -> dict[str, Entry]:
    """By name of the quantity: those with phrases, then the others by their own names."""
    known, derived = quantities(), listed("classes.toml", "derived", "families")
    found = {name: Entry(q, _phrases(q.words, q.exact)) for name, q in known.items() if q.words}
    for name, quantity in known.items():
        family, dot, rest = name.partition(".")
        if name not in found and not (dot and family in derived) and quantity.unit is not Unit.TEXT:
            own = [w for w in [rest.replace("_", " ") or name.replace("_", " ")] if _stands(w)]
            found[name] = Entry(quantity, _phrases([*own, *quantity.aliases]))
    return found


def _stands(written: str) -> bool:
    """ "requests done" says no more than requests once the empty word is gone, and those are anybody's."""
    return len(classed(words_of(written))) > 1 or len(words_of(written)) == 1


def _phrases(written: Iterable[str], exact: bool = False) -> tuple[frozenset[str], ...]:
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
