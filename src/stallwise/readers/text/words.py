"""Keys cut into words, and words into their classes (classes.toml)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from stallwise.tables import table
from stallwise.units import readings_of

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TOKEN = re.compile(r"[A-Za-z0-9]+")
_CUT = re.compile(r"[^a-z0-9µ%]+")
CACHED_CHARACTERS = 256  # names and clauses come again and again; a long text does not


@cache
def word_table(name: str) -> dict[str, Any]:
    """A table of this package."""
    return table(Path(__file__).with_name(name))


@cache
def turn(name: str) -> re.Pattern[str]:
    """An expression of the book of turns of speech."""
    return re.compile(word_table("turns.toml")[name])


@cache
def listed(name: str, *keys: str) -> frozenset[str]:
    """The words that stand under these keys of a table."""
    found: Any = word_table(name)
    for key in keys:
        found = found[key]
    return frozenset(found)


def words_of(key: str) -> tuple[str, ...]:
    """`MemAllocated (GB)` -> mem allocated gb."""
    return _known_words(key) if len(key) <= CACHED_CHARACTERS else _cut(key)


@lru_cache(maxsize=8192)
def _known_words(key: str) -> tuple[str, ...]:
    return _cut(key)


def _cut(key: str) -> tuple[str, ...]:
    spaced = _TOKEN.sub(_spaced, key).lower()
    if (joined := classes().joined) is not None:
        spaced = joined.sub(lambda m: _CUT.sub("", m[0]), spaced)
    return tuple(w for w in _CUT.split(spaced) if w)


def _spaced(token: re.Match[str]) -> str:
    """camelCase apart, unless the whole is a word of its own (cuBLAS, PyTorch) or its end a unit (usedMiB, kW)."""
    if token[0].lower() in classes().of:
        return token[0]
    parts = _HUMP.split(token[0])
    last = next((at for at in range(len(parts)) if readings_of("".join(parts[at:]))), len(parts) - 1)
    return " ".join([*parts[:last], "".join(parts[last:])])


@dataclass(frozen=True)
class Classes:
    """Which words mean the same, which say nothing, and which say what number of many it is."""

    of: dict[str, tuple[str, ...]]
    ignored: frozenset[str]
    statistic: dict[str, str]
    joined: re.Pattern[str] | None  # words that are one, however they are written


@cache
def classes() -> Classes:
    """The tables, once."""
    data = word_table("classes.toml")
    of: dict[str, tuple[str, ...]] = {w: (name,) for name, words in data["class"].items() for w in words}
    of |= {word: tuple(x for part in parts for x in of.get(part, (part,))) for word, parts in data["expand"].items()}
    statistic = {w: kind for kind, words in data["statistic"].items() for w in words}
    one = "|".join("[^a-z0-9]?".join(words.split()) for words in data["joined"]["words"])
    return Classes(of, frozenset(data["ignored"]["words"]), statistic, re.compile(rf"(?<![a-z])(?:{one})(?![a-z])"))


@lru_cache(maxsize=1 << 14)
def classed(words: tuple[str, ...]) -> frozenset[str]:
    """The classes of these words, those that say nothing left out."""
    known = classes()
    naming = [w for w in words if w not in known.ignored and w not in known.statistic]
    return frozenset(c for w in (naming or words[-1:]) for c in known.of.get(w, (w,)))


def statistic_of(words: tuple[str, ...]) -> str:
    """middle, tail, spread or nothing."""
    known = classes().statistic
    return next((known[w] for w in words if w in known), "")


def is_statistic(key: str) -> bool:
    """A key that says which number of many it is, and not of what."""
    words = words_of(key)
    return bool(words) and all(w in classes().statistic for w in words)
