"""Books of gauges: lines in which a known program states a number, from `gauges/*.toml`. A program's way of putting it is data.

A file is one format. An entry has the words that must stand in a line, an expression with typed slots, the quantities that the
slots are, and what is kept of many lines. What a heading sets holds for the lines below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from stallwise.readers.text.expressions import Expression, Value, entry_of
from stallwise.readers.text.tables import tables_in
from stallwise.tables import parsed

_PART = re.compile("«(.+?)»")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMetric(Expression):
    """One line of one program."""

    # quantity: slot, "=" and a word, words with {slots}, one slot less another, or "@elapsed": since the first clock
    facts: dict[str, str] = field(default_factory=dict)
    row: str = ""  # the table that a line is a row of
    words: dict[str, str] = field(default_factory=dict)  # how the words of a slot are told
    scope: dict[str, str] = field(default_factory=dict)  # field of the scope: slot
    keep: str = "each"
    by: str = ""  # slot that keeps values apart
    times: str = ""  # slot that the values are multiplied with
    note: str = ""  # slot that goes along, or words as those of a fact
    sets: tuple[str, ...] = ()  # slots, or words, that hold for the lines below
    clears: tuple[str, ...] = ()
    within: str = ""  # only where a line above has set this
    until: str = ""  # only where none has
    beside: str = ""  # only where a line anywhere sets this
    begins: bool = False  # begins a group
    retracts: tuple[str, ...] = ()  # quantities that this line takes back
    under: tuple[
        str, ...
    ] = ()  # slots: what is set holds for lines with the same values here, which are read only where it is
    many: bool = False  # every match of a line
    over: str = ""  # "steps" or "clock": a series, besides

    @property
    def alone(self) -> bool:
        """Tells other lines nothing, hears only whether something is set, and takes all its lines alike."""
        bound = self.sets or self.clears or self.begins or self.retracts or self.times
        slots = "".join(self.facts.values())
        derived = any(sign in slots for sign in ("@", "{", " - "))
        return not (bound or derived or self.many or self.under or self.keep in ("first", "group"))

    @property
    def read(self) -> tuple[str, ...]:
        """The slots whose values it tells, or words with slots in them."""
        return (*self.facts.values(), *self.scope.values(), *self.under, self.by, self.times, self.note)

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Where it stands in a line."""
        if self.many and not self.refuses(text):
            yield from self.ready.finditer(text)
        elif not self.many and (match := self.fits(text)) is not None:
            yield match


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForm:
    """A table that lines are rows of."""

    columns: dict[str, tuple[str, str | int | float]]  # slot or "=" and a word, and what stands where a line is silent
    alike: tuple[str, ...] = ()  # rows with the same cells in these columns are one
    keep: str = "first"  # of those, or "last", or the column of which the most is kept
    last: int = 0  # so many rows; all of them where it is none
    meta: dict[str, tuple[str, str]] = field(
        default_factory=dict
    )  # first, last, count or places, and a slot of any line


@dataclass(frozen=True, slots=True)
class MetricCatalogue:
    """The lines of one format."""

    format: str
    reads: str  # what it is, in a sentence
    metrics: tuple[LogMetric, ...]
    given: dict[str, Value] = field(default_factory=dict)  # slots that hold from the start
    needs: tuple[str, ...] = ()  # one of these must stand in the text
    says: dict[str, str] = field(default_factory=dict)  # quantity: word, wherever a gauge of the book stood
    in_logs: bool = False  # of lines that a program printed; on a page that a person wrote the lexicon reads better
    capture: str = ""  # the command that makes such a file, where there is one
    records: bool = False  # of documents, one record a line
    tables: dict[str, TableForm] = field(default_factory=dict)


@cache
def metric_catalogues() -> tuple[MetricCatalogue, ...]:
    """Every book."""
    return tuple(catalogue_in(text) for _, text in tables_in("log_metrics"))


def catalogue_in(text: str) -> MetricCatalogue:
    """The book of one file."""
    document = parsed(text)
    head: dict[str, Any] = dict(document["catalogue"])
    keep, parts = head.pop("keep", "each"), head.pop("parts", {})
    metrics = tuple(entry_of(LogMetric, {"keep": keep, **row, **_whole(row, parts)}) for row in document["metric"])
    head["needs"] = tuple(w.lower() for w in head.get("needs", ()))
    tables = {kind: TableForm(**form) for kind, form in document.get("table", {}).items()}
    return MetricCatalogue(metrics=metrics, tables=tables, **head)


def _whole(row: dict[str, Any], parts: dict[str, str]) -> dict[str, str]:
    """The expression with the parts of its book that it names in «»."""
    return {"match": _PART.sub(lambda m: parts[m[1]], row["match"])} if parts and "match" in row else {}
