"""The words around a number of a sentence: its clause, what runs on to the next number, and of which run or moment it is."""

from __future__ import annotations

import re
from functools import lru_cache

from stallwise.evidence.reading import Reading
from stallwise.readers.text.scopes import BEFORE, EXPECTED, is_past, scope_of, scope_words
from stallwise.readers.text.words import classes, listed, turn, words_of

_WORD = re.compile(r"[A-Za-z][\w/'-]*|->|→|=>")
Sentence = tuple[Reading, ...]
EXPECTING = 6  # words before a number among which one says that it was hoped for: "the estimate was a gain of"


@lru_cache(maxsize=64)
def words_in(sentence: Sentence) -> tuple[str, ...]:
    """All words of a sentence."""
    return tuple(w for r in sentence for p in (*r.path[:1], r.after) for w in words_of(p))


def words_up_to(sentence: Sentence) -> tuple[str, ...]:
    """The words before the last number of these, and those of its own clause behind it."""
    return tuple(w for r in sentence for w in clause_words(r.path[0])) + words_of(clause_after(sentence[-1].after))


def clause_after(text: str) -> str:
    """The words behind a number that still belong to it."""
    key = text.rstrip(" :=")
    if turn("joined").match(text) or (key != text.rstrip() and not turn("break").search(key)):
        return ""  # "TP 8 and DP 64": what follows names the next number
    return " ".join(_WORD.findall(turn("others").split(f" {turn('break').split(text)[0]} ")[0])[:4])


def runs_on(reading: Reading, sentence: Sentence) -> bool:
    """Whether the words behind a number run on to the next one, so that they may be that one's key."""
    return sentence.index(reading) + 1 < len(sentence) and not turn("break").search(f" {reading.after} ")


def scope_around(reading: Reading, sentence: Sentence) -> str:
    """Of which run or moment a number is: before, now, expected."""
    before, after = reading.path[0].lower().split()[-1:], reading.after.split()[:1]
    if before == ["from"] or (after and after[0] in ("->", "→", "=>")):
        return BEFORE
    words, behind = words_of(reading.path[-1] or reading.path[0]), words_of(clause_after(reading.after))
    last = reading is sentence[-1]  # before another number the words are that one's
    if any(scope_of((word,)) == EXPECTED for word in words[-EXPECTING:]) or (last and scope_of(behind[:3]) == EXPECTED):
        return EXPECTED
    return BEFORE if last and is_past(behind) else scope_of(words_of(reading.path[-1]))


def clause_words(text: str) -> tuple[str, ...]:
    """The words of a clause; "it" in a sentence is not an iteration."""
    return tuple(w for w in words_of(text) if w != "it")


def counts_a_thing(reading: Reading) -> bool:
    """Whether a noun follows at once: neither a small word, nor one that says of when the number is."""
    first = _WORD.match(reading.after.lstrip("-"))
    word = first[0].lower() if first else ""
    return bool(word) and word not in classes().ignored and word not in scope_words() and not scope_of((word,))


def of_the_host(reading: Reading) -> bool:
    """ "one CPU core is at 100%" is not about the GPU of the same sentence."""
    return bool(listed("turns.toml", "host") & {*words_of(reading.path[-1]), *words_of(reading.after)[:4]})
