"""Where an account speaks against itself: a thing and its opposite in one sentence, an action that changes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stallwise.drill.claims.reader import opposites, sentences

NEAR = 3  # words between a quality and what it describes
_JOINS = re.compile(
    r"\b(?:because|since|therefore|hence|so that|and so|means?|in order to|until|by|as|so|thus|to|which|and)\b"
)
_WORD = re.compile(r"[a-z][a-z_-]+")
_NOTHING_CHANGED = re.compile(r"\bwhich (?:it|they|we) (?:already )?(?:is|are|has|have|had|do|does)\b")
_EMPTY = frozenset(
    "the a an is are be it its they them their that this so more less not no already still all both to of in on at by".split()
)
_POINTS = frozenset(("it", "them", "they"))


def contradictions(text: str) -> list[str]:
    """The sentences that take back what they say."""
    found = []
    for _, sentence in sentences(text):
        if _NOTHING_CHANGED.search(sentence) or any(_clashes(sentence)):
            found.append(sentence.strip())
    return found


def _clashes(sentence: str) -> Iterator[str]:
    for join in _JOINS.finditer(sentence):
        left, right = _qualities(sentence[: join.start()]), _qualities(sentence[join.end() :])
        for (pair, side, thing), (other, opposite, same) in ((a, b) for a in left[-2:] for b in right[:2]):
            if pair == other and side != opposite and (thing == same or same in _POINTS):
                yield thing


def _qualities(part: str) -> list[tuple[int, int, str]]:
    """Which quality is given to which thing: the pair of opposites, the side, the nearest word that is a thing."""
    words = _WORD.findall(part)
    found = []
    for n, word in enumerate(words):
        if word in opposites():
            around = [*words[n + 1 : n + 1 + NEAR], *reversed(words[max(0, n - NEAR) : n])]
            things = [w for w in around if w not in opposites() and (w not in _EMPTY or w in _POINTS)]
            found += [(*opposites()[word], thing.rstrip("s")) for thing in things[:1]]
    return found
