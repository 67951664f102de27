"""The words around a number of a sentence that belong to it, and of which run or moment they make it."""

from __future__ import annotations

import re

from stallwise.evidence.reading import Reading
from stallwise.meaning.scopes import BEFORE, EXPECTED, is_past, scope_of, scope_words
from stallwise.meaning.words import classes, listed, turn, words_of

NEAR = 4  # words behind a number that may still say of what it is: "100 % of one core"
SCOPE_WORDS = 4  # before a number that may say of when it is
_WORD = re.compile(r"[A-Za-z][\w/'-]*|->|→|=>")


def clause_after(text: str) -> str:
    """The words behind a number that still belong to it."""
    named = text.rstrip(" :=")
    if turn("joined").match(text) or (named != text.rstrip() and not turn("break").search(named)):
        return ""  # "TP 8 and DP 64": what follows names the next number
    return " ".join(_WORD.findall(turn("others").split(f" {turn('break').split(text)[0]} ")[0])[:4])


def telling(text: str) -> tuple[str, ...]:
    """The words of a clause; "it" in a sentence is not an iteration."""
    return tuple(w for w in words_of(text) if w != "it")


def runs_on(reading: Reading, sentence: tuple[Reading, ...]) -> bool:
    """Whether the words behind a number run on to the next one, so that they may be that one's key."""
    return sentence.index(reading) + 1 < len(sentence) and not turn("break").search(f" {reading.after} ")


def counts_a_thing(reading: Reading) -> bool:
    """Whether a noun follows at once: neither a small word, nor one that says of when the number is, nor a new clause."""
    if reading.after.startswith("-"):
        return True  # "7.8-way", "132-SM"
    first = _WORD.match(reading.after)
    word = first[0].lower() if first else ""
    return bool(word) and word not in classes().ignored and word not in scope_words() and not scope_of((word,))


def of_the_host(reading: Reading) -> bool:
    """ "one CPU core is at 100%" is not about the GPU of the same sentence."""
    return bool(listed("turns.toml", "host") & {*words_of(reading.path[-1]), *words_of(reading.after)[:NEAR]})


def scope_around(reading: Reading, sentence: tuple[Reading, ...]) -> str:
    before, after = words_of(reading.path[-1] or reading.path[0]), words_of(clause_after(reading.after))
    at = sentence.index(reading)
    if reading.path[0].split()[-1:] and reading.path[0].split()[-1].lower() == "from":
        return BEFORE
    if reading.after.split()[:1] and reading.after.split()[0] in ("->", "→", "=>"):
        return BEFORE
    last = at + 1 == len(sentence)  # before another number the words are that one's
    if any(scope_of((word,)) == EXPECTED for word in before[-SCOPE_WORDS:]) or (
        last and scope_of(after[:3]) == EXPECTED
    ):
        return EXPECTED
    if last and is_past(after):
        return BEFORE
    return scope_of(words_of(reading.path[-1]))
