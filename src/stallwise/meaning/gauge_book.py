"""Books of gauges: lines in which a known program states a number, from `gauges/*.toml`. A program's way of putting it is data.

A file is one format. An entry has the words that must stand in a line, an expression with typed slots, the quantities that the
slots are, and what is kept of many lines. What a heading sets holds for the lines below it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from stallwise.meaning.expressions import Expression, Value, entry_of
from stallwise.meaning.tables import tables_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge(Expression):
    """One line of one program."""

    facts: dict[str, str] = field(
        default_factory=dict
    )  # quantity: slot, "=" and a word, or "@elapsed": since the first clock
    words: dict[str, str] = field(default_factory=dict)  # how the words of a slot are told
    scope: dict[str, str] = field(default_factory=dict)  # field of the scope: slot
    keep: str = "each"
    by: str = ""  # slot that keeps values apart
    times: str = ""  # slot that the values are multiplied with
    note: str = ""  # slot that goes along
    sets: tuple[str, ...] = ()  # slots, or words, that hold for the lines below
    clears: tuple[str, ...] = ()
    within: str = ""  # only where a line above has set this
    until: str = ""  # only where none has
    begins: bool = False  # begins a group
    retracts: tuple[str, ...] = ()  # quantities that this line takes back
    many: bool = False  # every match of a line
    over: str = ""  # "steps" or "clock": a series, besides

    @property
    def alone(self) -> bool:
        """Neither hears nor tells other lines, and takes all its lines alike."""
        bound = self.within or self.until or self.sets or self.clears or self.begins or self.retracts or self.times
        return (
            not bound
            and not self.many
            and self.keep not in ("first", "group")
            and "@elapsed" not in self.facts.values()
        )

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Where it stands in a line."""
        if self.many and not self.refuses(text):
            yield from self.ready.finditer(text)
        elif not self.many and (match := self.fits(text)) is not None:
            yield match


@dataclass(frozen=True, slots=True)
class GaugeBook:
    """The lines of one format."""

    format: str
    reads: str  # what it is, in a sentence
    gauges: tuple[Gauge, ...]
    given: dict[str, Value] = field(default_factory=dict)  # slots that hold from the start
    needs: tuple[str, ...] = ()  # one of these must stand in the text
    says: dict[str, str] = field(default_factory=dict)  # quantity: word, wherever a gauge of the book stood
    in_logs: bool = False  # of lines that a program printed; on a page that a person wrote the lexicon reads better
    capture: str = ""  # the command that makes such a file, where there is one


@cache
def gauge_books() -> tuple[GaugeBook, ...]:
    """Every book."""
    return tuple(book_in(text) for _, text in tables_in("gauges"))


def book_in(text: str) -> GaugeBook:
    """The book of one file."""
    document = tomllib.loads(text)
    head: dict[str, Any] = dict(document["book"])
    gauges = tuple(entry_of(Gauge, {"keep": head.get("keep", "each"), **row}) for row in document["gauge"])
    head["needs"] = tuple(w.lower() for w in head.get("needs", ()))
    head.pop("keep", None)
    return GaugeBook(gauges=gauges, **head)
