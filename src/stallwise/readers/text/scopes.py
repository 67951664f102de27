"""Of which run or moment a number speaks: before, now or expected, from the words around it (scopes.toml)."""

from __future__ import annotations

from functools import cache

from stallwise.readers.text.words import word_table, words_of

BEFORE, NOW, EXPECTED = "before", "now", "expected"


@cache
def _words() -> dict[str, str]:
    data = word_table("scopes.toml")
    return {" ".join(words_of(w)): kind for kind in (BEFORE, NOW, EXPECTED) for w in data[kind]}


def scope_of(words: tuple[str, ...]) -> str:
    """The scope that the last telling word gives; empty without one."""
    known = _words()
    words = tuple(w for w in words if not w.isdigit())  # "the first 3 hours"
    for at in range(len(words) - 1, -1, -1):
        pair = " ".join(words[at : at + 2])
        if pair in known:
            return known[pair]
        if words[at] in known:
            return known[words[at]]
    return ""


def without_phrases(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words without a phrase that says of when ("first 3 hours"): its parts are neither a unit nor a name."""
    plain_words = tuple(w for w in words if not w.isdigit())
    at = next((at for at in range(len(plain_words) - 1) if " ".join(plain_words[at : at + 2]) in _words()), None)
    return words if at is None else (*plain_words[:at], *plain_words[at + 2 :])


def is_past(words: tuple[str, ...]) -> bool:
    """Words behind a number that put it into the past: "it did 9,800 last week"."""
    plain = f" {' '.join(words)} "
    return any(phrase in plain for phrase in _past())


@cache
def _past() -> tuple[str, ...]:
    return tuple(f" {' '.join(words_of(w))} " for w in word_table("scopes.toml")["past"])


@cache
def scope_words() -> frozenset[str]:
    """Single words that only say of when a number speaks, or of which variant."""
    return frozenset({w for w in _words() if " " not in w} | set(word_table("scopes.toml")["variant"]))


@cache
def axes() -> dict[str, str]:
    """Names of columns that number or name their rows, by kind."""
    return {name: kind for kind, names in word_table("scopes.toml")["axis"].items() for name in names}


def axis_of(column: str) -> str:
    """Which axis a column is; empty for a measured one."""
    return axes().get(" ".join(words_of(column)), "")


def outcome_of(text: str) -> str:
    """good, bad or nothing."""
    plain = f" {' '.join(words_of(text))} "
    return next(
        (
            kind
            for kind in ("bad", "good")
            if any(f" {w} " in plain for w in word_table("scopes.toml")["outcome"][kind])
        ),
        "",
    )
