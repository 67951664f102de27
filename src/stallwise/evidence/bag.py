"""The words of a text, each once: what remains of a page when nobody understood its sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from stallwise.evidence.fact import Source

DENIED = "not:"  # before a stem that the text denies
MANNER = "how:"  # before a joining word, a status or a negated stem: how the text says things, not what it is about
TRIGRAM = "~"  # before three characters of a word: what words share that no stem joins ("throttling", "thermothrottle", a typo)
LONGEST_TEXT = 1 << 21  # letters: the beginning and the end of a longer log hold its words
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Words, and the short names of this trade that carry a digit (fp16, h2d, x16, e4m3, a100) or have two letters (kv, tp).
_WORD = re.compile(r"[A-Za-z]{1,3}\d{1,3}(?:[A-Za-z]\d?)?(?![A-Za-z0-9])|[A-Za-z]{2,40}")
_ENDINGS = (("ing", 5), ("ed", 5), ("s", 4), ("e", 4))  # taken off words of at least this length, one after another
# Words that join others and name nothing; a pair reaches across them.
_JOINING = frozenset(
    "the and for with that this these those from not are was were has have had its than then when which who will can all any "
    "how but you your our their there here into onto over per via out off too also only just very more most some such each "
    "both does did done been being would could should may might must of to in on at by as is it be or if so an no we he she my "
    "me us am do up".split()
)
_NUMBER = re.compile(r"^\s*[-+]?\d[\d.,:eE%+-]*\s*\w{0,4}\s*$")
_DOUBLE_RULE = re.compile(r"^\s*[|+╞╠][=+|═╪╬]{8,400}[|+╡╣]\s*$")
_BETWEEN_BARS = re.compile(r"^\s*[|│║](?!-{3})")
FEWEST_COLUMNS = 4  # cells that make a line a row


@dataclass(frozen=True, slots=True)
class Bag:
    """Stems of words, and of two words side by side, with the lines that may be quoted for them."""

    stems: frozenset[str]
    source: Source
    passages: tuple[Passage, ...] = ()
    composed: bool = False  # somebody put the text together of several things: a ticket, a session of several commands


@dataclass(frozen=True, slots=True)
class Passage:
    """A line or sentence as it stands in its file."""

    text: str
    source: Source


def stems_of(text: str) -> frozenset[str]:
    """Every stem once, and every pair of neighbours."""
    if len(text) > LONGEST_TEXT:
        text = text[: LONGEST_TEXT // 2] + "\n" + text[-LONGEST_TEXT // 2 :]
    words = _WORD.findall(_HUMP.sub(" ", "\n".join(_without_titles(text))))
    known = {word: stem(word) for word in set(words)}
    stems = list(filter(None, map(known.__getitem__, words)))
    return frozenset(stems).union(map(" ".join, pairwise(stems)))


def trigrams_of(text: str) -> frozenset[str]:
    """Every three neighbouring characters of its words, each once; a blank stands for the ends of a word."""
    words = (f" {word} " for word in set(text[:LONGEST_TEXT].lower().split()))
    return frozenset(f"{TRIGRAM}{word[i : i + 3]}" for word in words for i in range(len(word) - 2))


def joining_words(text: str) -> frozenset[str]:
    """The words that name nothing; whether a text complains shows in them: "if", "would", "had", "until"."""
    return frozenset(w for w in map(str.lower, _WORD.findall(text)) if w in _JOINING)


def _without_titles(text: str) -> Iterator[str]:
    """The lines but for those that title columns of numbers: they tell what was sampled, not what is wrong."""
    lines = text.splitlines()
    boxed = _boxed_titles(lines)
    for at, (line, below) in enumerate(zip(lines, [*lines[1:], ""], strict=False)):
        if at in boxed:
            continue
        mark = next((m for m in ",\t|;" if m in line and line.count(m) >= FEWEST_COLUMNS - 1), "")
        if mark and line.count(mark) == below.count(mark):
            cells = below.split(mark)
            if not any(_NUMBER.match(c) for c in line.split(mark)) and sum(
                _NUMBER.match(c) is not None for c in cells
            ) * 2 > len(cells):
                continue
        yield line


def _boxed_titles(lines: list[str]) -> set[int]:
    """Rows of a drawn table above its double rule, up to the rule before."""
    found: set[int] = set()
    for at in (i for i, line in enumerate(lines) if _DOUBLE_RULE.match(line)):
        above = at - 1
        while above >= 0 and _BETWEEN_BARS.match(lines[above]):
            found.add(above)
            above -= 1
    return found


def stem(word: str) -> str:
    """A word without its endings, so that "loading", "loads" and "loaded" are one; nothing for words that only join."""
    short = word.lower()
    if short in _JOINING:
        return ""
    for ending, least in _ENDINGS:
        if len(short) >= least and short.endswith(ending) and not short.endswith("ss"):
            short = short[: -len(ending)]
    return short
