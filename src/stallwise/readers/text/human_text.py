"""A person's sentences, told from a program's lines by the small words that join them (human_text.toml)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from stallwise.readers.text.groups import clauses, pattern_of, plain
from stallwise.readers.text.words import word_table

LEAST_WORDS = 6  # fewer are a title, a status or an answer
LEAST_JOINED = 0.25  # of the words: in English prose four or five of ten are such, in lines of programs one
MOST_SIGNS = 0.06  # of the letters are brackets, bars, equals signs: a row of data, with a word or two in it
_QUESTION = re.compile(r"[a-z)]\?(?:\s|$)")  # not one inside an address
_WORD = re.compile(r"[a-z][a-z'-]*")
_HEADING = re.compile(r"(?:\A|\n[ \t]{0,9}\n)#{1,6} [^\n]{1,200}\n[ \t]{0,9}\n")
LEAST_HEADINGS = 2
_SIGNS = re.compile(r"[{}\[\]|=<>_\\#*\u2500-\u257f]")


def first_statement(sentences: Iterable[str], page: str) -> tuple[str, bool]:
    """The first sentence in which somebody tells of a run, and whether the page asks or is disappointed anywhere.

    No sentence where none is a person's, or where the page says that all is well.
    """
    statement = next((s for s in sentences if _is_prose(s)), "")
    if not statement or _words("content").search(plain(page)):
        return "", False
    return statement, asks(page)


def asks(page: str) -> bool:
    """Whether somebody asks, is disappointed or sees a contrast with what should be."""
    return _QUESTION.search(page) is not None or _words("asking").search(plain(page)) is not None


def is_settled(page: str) -> bool:
    """Whether the page closes its matter, and neither asks nor doubts."""
    lowered = plain(page)
    return (
        _words("settled").search(lowered) is not None
        and _QUESTION.search(page) is None
        and not any(_words("doubt").search(clause) for clause in clauses(unresolved(lowered)))
    )


def is_manual(page: str) -> bool:
    """Whether a page with headings tells of nobody's own run and asks nothing: a manual, release notes, a report for others."""
    return (
        len(_HEADING.findall(page)) >= LEAST_HEADINGS
        and _words("own").search(plain(page)) is None
        and _QUESTION.search(page) is None
    )


def unresolved(sentence: str) -> str:
    """A sentence without its clauses on trouble that is over."""
    return ", ".join(part for part in clauses(plain(sentence)) if not _words("over").search(part))


def _is_prose(sentence: str) -> bool:
    words = _WORD.findall(plain(sentence))
    if len(words) < LEAST_WORDS or len(_SIGNS.findall(sentence)) > MOST_SIGNS * len(sentence):
        return False
    return sum(w in _joining() for w in words) >= LEAST_JOINED * len(words)


@cache
def _joining() -> frozenset[str]:
    return frozenset(word_table("human_text.toml")["joining"].split("|"))


@cache
def _words(row: str) -> re.Pattern[str]:
    return pattern_of(word_table("human_text.toml")[row])
