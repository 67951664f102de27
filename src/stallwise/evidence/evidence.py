"""Everything known about a run: facts, series, tables, ledgers, and what could not be read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from stallwise.evidence.bag import Bag, Passage
from stallwise.evidence.by_scope import ByLabel, Scopes, by_scope, facts_by_scope
from stallwise.evidence.event import Event, Role
from stallwise.evidence.fact import WHOLE, Fact, Note, Scope, Series, Source, Table
from stallwise.evidence.flags import is_denied_event
from stallwise.evidence.ledger import Ledger
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.timeline import Timeline
from stallwise.evidence.unread import Unread

MOST_PASSAGES = 2000  # of all inputs: a thousand rank logs say the same lines
_ENDLESS = (float("inf"), float("-inf"))
Item = Fact | Series | Table | Ledger | Timeline | Note | Unread | Event | Bag


@dataclass(frozen=True, slots=True)
class _Parts:
    """Everything by the part of the world that it speaks of, as long as nothing is added."""

    count: int
    facts: dict[Scope, dict[str, list[Fact]]]
    series: dict[Scope, list[Series]]
    tables: dict[Scope, list[Table]]
    ledgers: dict[Scope, list[Ledger]]


@dataclass(slots=True, eq=False, repr=False)
class Evidence:
    """A growing collection; readers and measures add, rules only look."""

    inputs: list[str] = field(default_factory=list)  # what was read, in the user's words
    formats: list[str] = field(default_factory=list)
    facts: dict[str, list[Fact]] = field(default_factory=lambda: defaultdict(list))
    all_series: list[Series] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    ledgers: list[Ledger] = field(default_factory=list)
    timelines: list[Timeline] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)  # messages with a meaning, in the order of their files
    stems: set[str] = field(default_factory=set)  # words of all texts, each once
    passages: list[Passage] = field(default_factory=list)  # lines that may be quoted for those words
    composed: set[str] = field(default_factory=set)  # files that somebody put together of several things
    remarks: set[str] = field(default_factory=set)  # short texts beside artifacts that neither ask nor complain
    records: set[str] = field(default_factory=set)  # files of keys or columns with their numbers, and no sentences
    unread: list[Unread] = field(default_factory=list)  # what was read and not understood, file by file
    _parts: _Parts | None = field(default=None, init=False)
    _labels: dict[tuple[str, str], ByLabel] = field(default_factory=dict, init=False)
    _scopes: dict[str, Scopes] = field(default_factory=lambda: defaultdict(Scopes), init=False)
    _at: dict[Source, Event] = field(default_factory=dict, init=False)  # the first event of each line
    _placed: int = field(default=0, init=False)  # events that `_at` knows of

    def __repr__(self) -> str:
        count = sum(map(len, self.facts.values()))
        return f"<Evidence {count} facts, {len(self.tables)} tables, {len(self.events)} messages of {len(self.inputs)} files>"

    def add(self, items: Iterable[Item]) -> None:
        """Takes whatever a reader or a measure yields."""
        for item in items:
            match item:
                case Fact() if item.value in _ENDLESS:
                    self.notes.append(Note(f"an endless {item.quantity.name} is left out", item.source, lost=True))
                case Fact() if is_denied_event(item.quantity.name, item.value):
                    pass  # it did not happen
                case Fact():
                    self.facts[item.quantity.name].append(item)
                case Series():
                    self.all_series.append(item)
                case Table():
                    self.tables.append(item)
                case Ledger():
                    self.ledgers.append(item)
                case Timeline():
                    self.timelines.append(item)
                case Note():
                    self.notes.append(item)
                case Unread():
                    self.unread.append(item)
                case Event():
                    self.events.append(item)
                case Bag():
                    self.stems |= item.stems
                    self.passages += item.passages[: MOST_PASSAGES - len(self.passages)]
                    self.composed |= {item.source.file} if item.composed else set()

    def all(self, quantity: Quantity) -> list[Fact]:
        """Every fact of this quantity, whatever its scope."""
        return self.facts.get(quantity.name, [])

    def get(self, quantity: Quantity, **labels: object) -> Fact | None:
        """The fact of this quantity in this scope: measured before stated, whole run before parts, newest last."""
        found: Sequence[Fact] = self.all(quantity)
        for label, value in labels.items():
            known = (
                self._labels.setdefault((quantity.name, label), ByLabel(label)) if len(labels) == 1 else ByLabel(label)
            )
            found = known.of(found, value)
        return min(reversed(found), key=_rank, default=None)

    def value(self, quantity: Quantity, default: float = float("nan"), **labels: object) -> float:
        """The number of that fact, or the default."""
        fact = self.get(quantity, **labels)
        return default if fact is None else fact.number

    def text(self, quantity: Quantity, default: str = "", **labels: object) -> str:
        """The word of that fact, or the default."""
        fact = self.get(quantity, **labels)
        return default if fact is None else str(fact.value)

    def events_of(
        self, *kinds: str, roles: tuple[Role, ...] = (Role.ROOT, Role.CASCADE, Role.CONFIRMATION)
    ) -> list[Event]:
        """Events of these kinds; advice and messages of no known weight only where asked for."""
        return [e for e in self.events if e.kind in kinds and e.role in roles]

    def at(self, source: Source) -> Event | None:
        """The event read off this line: what a fact of the same line is, beyond its words."""
        for event in self.events[self._placed :]:
            self._at.setdefault(event.source, event)
        self._placed = len(self.events)
        return self._at.get(source)

    def series(self, quantity: Quantity) -> list[Series]:
        """Every series of this quantity."""
        return [s for s in self.all_series if s.quantity.name == quantity.name]

    def table(self, kind: str) -> list[Table]:
        """Every table of this kind."""
        return [t for t in self.tables if t.kind == kind]

    def scopes(self, label: str) -> Iterator[Scope]:
        """Each distinct scope that carries this label, in order of appearance."""
        seen: set[Scope] = set()
        for name, facts in list(self.facts.items()):
            for scope in self._scopes[name].of(facts):
                if getattr(scope, label) is not None and scope not in seen:
                    seen.add(scope)
                    yield scope

    def within(self, scope: Scope) -> Evidence:
        """A view with the facts of exactly this scope first in line, the run-wide ones kept; to look at, not to add to."""
        parts = self._parts
        if parts is None or parts.count != self._count():
            parts = self._parts = _Parts(
                self._count(), facts_by_scope(self.facts), by_scope(self.all_series), by_scope(self.tables), by_scope(self.ledgers)
            )  # fmt: skip
        view = Evidence(self.inputs, self.formats, notes=self.notes, events=self.events, records=self.records)
        view.facts.update(parts.facts.get(WHOLE, {}))
        view.facts.update(parts.facts.get(scope, {}))
        view.all_series = parts.series.get(scope, [])
        view.tables = parts.tables.get(scope, [])
        view.ledgers = parts.ledgers.get(scope, [])
        return view

    def copied(self) -> Evidence:
        """The same items in lists of their own: what is added to one is not in the other."""
        other = Evidence(
            list(self.inputs), list(self.formats), all_series=list(self.all_series), tables=list(self.tables),
            ledgers=list(self.ledgers), timelines=list(self.timelines), notes=list(self.notes), events=list(self.events),
            stems=set(self.stems), passages=list(self.passages), composed=set(self.composed), remarks=set(self.remarks),
            records=set(self.records), unread=list(self.unread),
        )  # fmt: skip
        other.facts.update({name: list(facts) for name, facts in self.facts.items()})
        return other

    def _count(self) -> int:
        return sum(map(len, self.facts.values())) + len(self.all_series) + len(self.tables) + len(self.ledgers)


def _rank(fact: Fact) -> tuple[bool, int]:
    """Measured before stated, the whole run before its parts."""
    return fact.stated, 0 if fact.scope is WHOLE else len(fact.scope.to_dict())
