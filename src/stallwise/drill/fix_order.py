"""Which of the doctor's fixes a player means, and how far the two orders agree."""

from __future__ import annotations

import re
from collections.abc import Sequence

LEAST_SHARE = 0.4  # of the words that carry meaning in what the player wrote
_EMPTY = frozenset(
    "the and for with from into onto over under that this then than them they first more most use using make all any are not but its "
    "should would could can will has have one two per out off because worth since".split()
)
_REASON = re.compile(r"\b(?:because|since|so that)\b", re.IGNORECASE)
_UP = ("increas", "rais", "larger", "bigger", "more", "add", "grow", "higher", "widen", "expand")
_DOWN = ("decreas", "reduc", "lower", "smaller", "fewer", "less", "shrink", "shorten", "cap")


def stems(text: str) -> frozenset[str]:
    """Beginnings of the words that carry meaning."""
    words = re.findall(r"[a-z0-9_]+", text.lower())
    return frozenset(_stem(w) for w in words if len(w) > 2 and w not in _EMPTY and not w.startswith((*_UP, *_DOWN)))


def _stem(word: str) -> str:
    """Endings off, long words cut: "blaming" and "blame" are one word here."""
    return re.sub(r"(ing|ed|es|s|e)$", "", word)[:6] if len(word) > 4 else word


def _direction(text: str) -> int:
    words = re.findall(r"[a-z]+", text.lower())
    up, down = (any(w.startswith(d) for w in words) for d in (_UP, _DOWN))
    return int(up) - int(down)


def meant(said: str, actions: Sequence[str]) -> int | None:
    """Index of the action that a text means, by shared words; opposite directions never match."""
    said = _REASON.split(said)[0] or said  # why it pays is not what it is
    mine = stems(said)
    if not mine:
        return None
    best, share = None, 0.0
    for place, action in enumerate(actions):
        if _direction(said) * _direction(action) < 0:
            continue
        theirs = stems(action)
        common = len(mine & theirs) / max(1, min(len(mine), len(theirs)))
        if common > share:
            best, share = place, common
    return best if share >= LEAST_SHARE else None


def rank_correlation(places: Sequence[int]) -> float:
    """Kendall's tau of an order of places against the ascending one; 1 where there is nothing to compare."""
    pairs = [(a, b) for i, a in enumerate(places) for b in places[i + 1 :] if a != b]
    return sum(1 if a < b else -1 for a, b in pairs) / len(pairs) if pairs else 1.0
