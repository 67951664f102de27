"""Grades free text by the ideas it holds, generously, and shows what it matched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

PASS_SHARE = 0.6  # most of the ideas: an answer a colleague would accept
STRONG_SHARE = 0.85


@dataclass(frozen=True, slots=True)
class Grade:
    """Which ideas were found (with the words that did it) and which were not."""

    found: tuple[tuple[str, str], ...]  # idea, the player's words
    missing: tuple[str, ...]

    @property
    def share(self) -> float:
        """Found over all."""
        whole = len(self.found) + len(self.missing)
        return len(self.found) / whole if whole else 0.0

    @property
    def verdict(self) -> str:
        """strong, pass or again."""
        return "strong" if self.share >= STRONG_SHARE else "pass" if self.share >= PASS_SHARE else "again"


def grade(answer: str, ideas: Sequence[Sequence[str]]) -> Grade:
    """Each idea counts once, by any of its words; word beginnings are enough, so "saturat" finds "saturation"."""
    text = _plain(answer)
    found, missing = [], []
    for idea in ideas:
        hit = next((match for word in idea if (match := _find(word, text))), None)
        if hit is None:
            missing.append(idea[0])
        else:
            found.append((idea[0], hit))
    return Grade(tuple(found), tuple(missing))


def _find(word: str, text: str) -> str | None:
    plain = _plain(word)
    # Numbers must stand alone ("16" is not in "160"); words may go on.
    pattern = rf"(?<![\w.]){re.escape(plain)}(?![\d])" if plain[:1].isdigit() else rf"(?<!\w){re.escape(plain)}\w*"
    match = re.search(pattern, text)
    return match[0] if match else None


def _plain(text: str) -> str:
    lowered = text.lower().replace("’", "'").replace("×", "x").replace("²", "^2")
    return re.sub(r"\s+", " ", re.sub(r"(?<=\d),(?=\d{3})", "", lowered)).strip()
