"""Which of thousands of fixed words stand in which lines, in one pass, and who asked for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from stallwise.evidence.skeletons import Skeletons
from stallwise.late import np

try:
    from ahocorasick_rs import BytesAhoCorasick as Automaton
except ImportError:  # no wheel for this platform
    from stallwise.readers.text.folded import Folded

    Automaton = Folded  # type: ignore[misc,assignment]

_NO_DIGITS = str.maketrans("", "", "0123456789")  # words are looked for in skeletons
FEW_HITS = 64  # up to here a loop is as fast as arrays
Owner = TypeVar("Owner")


class Anchors(Generic[Owner]):
    """Words, in lower case, each with whoever asks for it."""

    def __init__(self, asked: Iterable[tuple[str, Owner]]) -> None:
        owners: dict[str, list[Owner]] = {}
        for word, owner in asked:
            owners.setdefault(word.translate(_NO_DIGITS), []).append(owner)
        self.owners = tuple(owners.values())
        self.automaton = Automaton([word.encode() for word in owners])

    def standing(self, text: Skeletons) -> dict[int, set[Owner]]:
        """The skeletons that hold a word, and who asked for one of theirs."""
        data = text.lowered
        found_at = self.automaton.find_matches_as_indexes(data, overlapping=True)
        if len(found_at) <= FEW_HITS:
            return self._few(data, found_at)
        hits = np.array(found_at, dtype=np.int64).reshape(-1, 3)
        feeds = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10)
        rows = np.searchsorted(feeds, hits[:, 1], side="right")
        found: dict[int, set[Owner]] = {}
        for row, word in np.unique(np.stack([rows, hits[:, 0]], axis=1), axis=0).tolist():
            found.setdefault(row, set()).update(self.owners[word])
        return found

    def _few(self, data: bytes, hits: Iterable[tuple[int, int, int]]) -> dict[int, set[Owner]]:
        """The same without arrays: a sentence has none."""
        found: dict[int, set[Owner]] = {}
        for row, word in sorted({(data.count(b"\n", 0, start), word) for word, start, _ in hits}):
            found.setdefault(row, set()).update(self.owners[word])
        return found
