"""The words of a text as features: stems and pairs of what it affirms, `not:` stems of what it denies."""

from __future__ import annotations

from collections.abc import Iterable

from stallwise.doctor.recognise.model import DENIED
from stallwise.evidence.bag import Bag, Passage, stems_of
from stallwise.evidence.fact import Source
from stallwise.meaning.assertion import affirmed, denied, spans_of
from stallwise.meaning.troubles import undenied

MOST_PASSAGES = 200  # of one file
LONGEST_PASSAGE = 240  # characters: what a person reads as one quote


def words_in(text: str) -> frozenset[str]:
    """Stems and pairs of neighbours that the text affirms, and single stems that it denies."""
    text = undenied(text)
    spans = spans_of(text)
    if not spans:
        return stems_of(text)
    against = {f"{DENIED}{stem}" for stem in stems_of(denied(text, spans)) if " " not in stem}
    return stems_of(affirmed(text, spans)) | against


def asserted_in(text: str) -> str:
    """What a person's text says of the run in question; the rest is blank, counts of zero stay."""
    return affirmed(text, spans_of(text), numbers=True)


def bag_of(lines: Iterable[tuple[int, str]], file: str, *, stated: bool = False) -> Bag:
    """The words of numbered lines (from 1), each line a passage that can be quoted."""
    held = [(number, line) for number, line in lines if line.strip()]
    passages = tuple(
        Passage(line.strip()[:LONGEST_PASSAGE], Source(file, f"line {number}", stated))
        for number, line in held[:MOST_PASSAGES]
    )
    return Bag(words_in("\n".join(line for _, line in held)), Source(file), passages)
