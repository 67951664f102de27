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
from importlib.resources import files
from typing import Any

from stallwise.meaning.book import compiled

Value = float | str
_PLAIN = ("by", "times", "note", "within", "until", "begins", "many", "over", "unless")


@dataclass(frozen=True, slots=True)
class Gauge:
    """One line of one program."""

    anchors: tuple[str, ...]
    pattern: str
    facts: dict[str, str]  # quantity: slot, a word after "=", or "@elapsed": seconds since the first clock
    slots: dict[str, str]  # type of a slot
    words: dict[str, str]  # how the words of a slot are told
    scope: dict[str, str]  # field of the scope: slot
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
    cased: bool = False
    unless: str = ""
    samples: tuple[str, ...] = ()

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
        if not self.unless or not compiled(self.unless, self.cased).search(text):
            yield from self.found(text)

    def found(self, text: str) -> Iterator[re.Match[str]]:
        """The same, whatever else the line holds."""
        if self.many:
            yield from compiled(self.pattern, self.cased).finditer(text)
        elif (match := compiled(self.pattern, self.cased).search(text)) is not None:
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
    folder = files("stallwise.meaning").joinpath("gauges")
    names = sorted(p.name for p in folder.iterdir() if p.name.endswith(".toml"))
    return tuple(book_in(folder.joinpath(name).read_text(encoding="utf-8")) for name in names)


def book_in(text: str) -> GaugeBook:
    """The book of one file."""
    document: dict[str, Any] = tomllib.loads(text)
    head = document["book"]
    return GaugeBook(
        head["format"], head["reads"], tuple(_gauge(row, head) for row in document["gauge"]), head.get("given", {}),
        tuple(w.lower() for w in head.get("needs", ())), head.get("says", {}), head.get("in_logs", False),
        head.get("capture", ""),
    )  # fmt: skip


def _gauge(row: dict[str, Any], head: dict[str, Any]) -> Gauge:
    more: dict[str, Any] = {key: tuple(row.get(key, ())) for key in ("sets", "clears", "retracts")}
    more |= {key: row[key] for key in _PLAIN if key in row}
    anchors = row["anchor"] if isinstance(row["anchor"], list) else [row["anchor"]]
    return Gauge(
        tuple(a.lower() for a in anchors), row["match"], row.get("facts", {}), row.get("slots", {}), row.get("words", {}),
        row.get("scope", {}), row.get("keep", head.get("keep", "each")), cased=row.get("case", False),
        samples=tuple(row.get("sample", ())), **more,
    )  # fmt: skip
