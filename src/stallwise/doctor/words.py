"""The words that a text affirms, and what of a person's text is said of the run in question."""

from __future__ import annotations

from stallwise.evidence.bag import stems_of
from stallwise.meaning.assertion import affirmed, spans_of
from stallwise.meaning.troubles import undenied

LONGEST_PAGE = 1 << 16  # characters: a longer text is a program's log, which denies nothing in sentences


def words_in(text: str, *, prose: bool = True) -> frozenset[str]:
    """Stems and pairs of neighbours that the text affirms."""
    text = undenied(text)
    return stems_of(affirmed(text, spans_of(text)) if prose and len(text) <= LONGEST_PAGE else text)


def asserted_in(text: str) -> str:
    """What a person's text says of the run in question; the rest is blank, counts of zero stay."""
    return affirmed(text, spans_of(text), numbers=True)
