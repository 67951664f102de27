"""The words of a text as features: stems and pairs of what it affirms, `not:` stems of what it denies."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stallwise.evidence.bag import DENIED, MANNER, Bag, Passage, joining_words, stems_of, trigrams_of
from stallwise.evidence.fact import Source
from stallwise.readers.text.assertion import Span, affirmed, denied, negated, spans_of, statuses
from stallwise.readers.text.troubles import undenied

MOST_PASSAGES = 200  # of one file
LONGEST_PASSAGE = 240  # characters: what a person reads as one quote
LONGEST_PAGE = 1 << 16  # characters: a longer text is a program's log, which denies nothing in sentences


def words_in(text: str, *, prose: bool = True) -> frozenset[str]:
    """Stems, pairs of neighbours and trigrams that the text affirms, single stems that it denies, and how it says things."""
    text = undenied(text)
    if not prose or len(text) > LONGEST_PAGE:
        return stems_of(text)
    spans = spans_of(text)
    against = {f"{DENIED}{stem}" for stem in stems_of(denied(text, spans)) if " " not in stem}
    held = affirmed(text, spans)
    about = stems_of(held) | against
    return about | trigrams_of(held) | _manner(text, spans) if about else about


def _manner(text: str, spans: list[Span]) -> set[str]:
    """How the text says things: its joining words, what it does not assert, and what it negates."""
    stems = (f"no {stem}" for stem in stems_of(negated(text)) if " " not in stem)
    return {f"{MANNER}{word}" for word in (*joining_words(text), *statuses(spans), *stems, *_figures(text))}


def _figures(text: str) -> set[str]:
    """What its numbers look like, whatever they count: zeros, shares near their ends, lists that stay level or spread."""
    found, row = set(), list[float]()
    last = 0
    for match in _NUMBER.finditer(text):
        value = float(match[1].replace(",", ""))
        if match[2]:
            found |= {"share is high"} if value >= HIGH else {"share is low"} if value <= 100.0 - HIGH else set()
        found |= {"zero"} if value == 0.0 else set()
        row = [*row, value] if _LISTED.fullmatch(text, last, match.start()) else [value]
        last = match.end()
        if len(row) >= SEVERAL:
            found.add("list is level" if max(row) <= LEVEL * min(row) else "list spreads")
    return found


_NUMBER = re.compile(r"(?<![\w.,/-])(\d{1,3}(?:,\d{3})+|\d{1,15}(?:\.\d{1,9})?)(\s?%)?(?![\w.]*\d)")
_LISTED = re.compile(r"\s{0,2}(?:[A-Za-z/%]{1,9}\s{0,2})?(?:[,;/|>-]|->|to|and|then)\s{0,2}")
HIGH = 90.0  # per cent
SEVERAL = 3  # numbers that make a list
LEVEL = 1.15  # of the least: what steps and cards differ by from one to the next


def asserted_in(text: str) -> str:
    """What a person's text says of the run in question; the rest is blank, counts of zero stay."""
    return affirmed(text, spans_of(text), numbers=True)


def bag_of(lines: Iterable[tuple[int, str]], file: str, *, stated: bool = False, prose: bool = True) -> Bag:
    """The words of numbered lines (from 1), each line a passage that can be quoted."""
    held = [(number, line) for number, line in lines if line.strip()]
    passages = tuple(
        Passage(line.strip()[:LONGEST_PASSAGE], Source(file, f"line {number}", stated))
        for number, line in held[:MOST_PASSAGES]
    )
    return Bag(words_in("\n".join(line for _, line in held), prose=prose), Source(file), passages)
