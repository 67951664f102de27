"""The words of a text, each once: what remains of a page when nobody understood its sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stallwise.evidence.fact import Source

LONGEST_TEXT = 1 << 21  # letters: the beginning and the end of a longer log hold its words
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WORD = re.compile(r"[A-Za-z]{3,40}")
_ENDINGS = (("ing", 5), ("ed", 5), ("s", 4), ("e", 4))  # taken off words of at least this length, one after another


@dataclass(frozen=True, slots=True)
class Bag:
    """Stems of words, and of two words side by side."""

    stems: frozenset[str]
    source: Source


def stems_of(text: str) -> frozenset[str]:
    """Every stem once, and every pair of neighbours."""
    if len(text) > LONGEST_TEXT:
        text = text[: LONGEST_TEXT // 2] + "\n" + text[-LONGEST_TEXT // 2 :]
    words = _WORD.findall(_HUMP.sub(" ", text))
    known: dict[str, str] = {}
    stems = [known[w] if w in known else known.setdefault(w, stem(w)) for w in words]
    return frozenset(stems) | frozenset(f"{a} {b}" for a, b in zip(stems, stems[1:], strict=False))


def stem(word: str) -> str:
    """A word without its endings, so that "loading", "loads" and "loaded" are one."""
    short = word.lower()
    for ending, least in _ENDINGS:
        if len(short) >= least and short.endswith(ending) and not short.endswith("ss"):
            short = short[: -len(ending)]
    return short
