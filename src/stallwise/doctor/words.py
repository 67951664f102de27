"""The words of a text as features: stems and pairs of what it affirms, `not:` stems of what it denies."""

from __future__ import annotations

from stallwise.evidence.bag import stems_of
from stallwise.meaning.assertion import affirmed, denied, spans_of

DENIED = "not:"


def words_in(text: str) -> frozenset[str]:
    """Stems and pairs of neighbours that the text affirms, and single stems that it denies."""
    spans = spans_of(text)
    if not spans:
        return stems_of(text)
    against = {f"{DENIED}{stem}" for stem in stems_of(denied(text, spans)) if " " not in stem}
    return stems_of(affirmed(text, spans)) | against


def asserted_in(text: str) -> str:
    """What a person's text says of the run in question; the rest is blank, counts of zero stay."""
    return affirmed(text, spans_of(text), numbers=True)
