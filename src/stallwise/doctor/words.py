"""The words of a text as features: stems and pairs of what it affirms, `not:` stems of what it denies."""

from __future__ import annotations

from collections.abc import Iterable

from stallwise.evidence.bag import DENIED, Bag, Passage, stems_of
from stallwise.evidence.fact import Source
from stallwise.meaning.assertion import affirmed, denied, spans_of
from stallwise.meaning.troubles import undenied

MOST_PASSAGES = 200  # of one file
LONGEST_PASSAGE = 240  # characters: what a person reads as one quote
LONGEST_PAGE = 1 << 16  # characters: a longer text is a program's log, which denies nothing in sentences


def words_in(text: str, *, prose: bool = True) -> frozenset[str]:
    """Stems and pairs of neighbours that the text affirms, and single stems that it denies."""
    text = undenied(text)
    spans = spans_of(text) if prose and len(text) <= LONGEST_PAGE else []
    if not spans:
        return stems_of(text)
    against = {f"{DENIED}{stem}" for stem in stems_of(denied(text, spans)) if " " not in stem}
    return stems_of(affirmed(text, spans)) | against


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
