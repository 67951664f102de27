"""Which artifact a request means: in any words and any order, through the lexicon's word classes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cache

from stallwise.drill import rows
from stallwise.readers.text.words import classed, words_of

_ASKING = frozenset(
    "can could may i me we you us see show give get have want need please look at let the a an of for some any is are there "
    "what which do does did about with and or on in to from my our your it its this that file files output".split()
)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A kind of artifact: what it is called, what it costs, how it is asked for."""

    kind: str
    what: str
    minutes: int
    phrases: tuple[frozenset[str], ...]


@cache
def artifacts() -> dict[str, Artifact]:
    """The table, once."""
    found = {}
    for row in rows("artifacts.tsv"):
        phrases = tuple(meaning for p in (*row["words"].split(" | "), row["what"]) if (meaning := _meaning_classes(p)))
        found[row["kind"]] = Artifact(row["kind"], row["what"], int(row["minutes"]), phrases)
    return found


@cache
def _weights() -> dict[str, float]:
    """Rare words say more: a word that stands in the phrases of one kind names it."""
    count = Counter(w for a in artifacts().values() for w in {w for p in a.phrases for w in p})
    return {w: math.log(1 + len(artifacts()) / n) for w, n in count.items()}


@cache
def _meaning_classes(text: str) -> frozenset[str]:
    """The words that carry meaning, as their classes."""
    words = tuple(_singular(w) for w in words_of(text))
    naming = tuple(w for w in words if w not in _ASKING)
    return frozenset(classed(naming or words)) if words else frozenset()


def _singular(word: str) -> str:
    """`logs` and `log` are one word to whoever asks."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def meant(request: str) -> tuple[str, ...]:
    """Kinds that a request means, best first."""
    asked = _meaning_classes(request)
    score = {kind: max((_weight(p) for p in a.phrases if p <= asked), default=0.0) for kind, a in artifacts().items()}
    return tuple(kind for kind in sorted(score, key=lambda k: -score[k]) if score[kind] > 0)


def _weight(phrase: frozenset[str]) -> float:
    return sum(_weights()[w] for w in phrase)
