"""Everything known about a run: facts, series, tables, ledgers, and what could not be read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from stallwise.evidence.fact import Fact, Note, Scope, Series, Table
from stallwise.evidence.ledger import Ledger
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.timeline import Timeline
from stallwise.evidence.unread import Unread

Item = Fact | Series | Table | Ledger | Timeline | Note | Unread


@dataclass(slots=True, eq=False)
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
    unread: list[Unread] = field(default_factory=list)  # what was read and not understood, file by file

    def add(self, items: Iterable[Item]) -> None:
        """Takes whatever a reader or a measure yields."""
        for item in items:
            match item:
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

    def all(self, quantity: Quantity) -> list[Fact]:
        """Every fact of this quantity, whatever its scope."""
        return self.facts.get(quantity.name, [])

    def get(self, quantity: Quantity, **labels: object) -> Fact | None:
        """The fact of this quantity in this scope: measured before stated, whole run before parts, newest last."""
        found = [f for f in self.all(quantity) if all(getattr(f.scope, k) == v for k, v in labels.items())]
        if not found:
            return None
        return min(reversed(found), key=lambda f: (f.stated, len(f.scope.to_dict())))

    def value(self, quantity: Quantity, default: float = float("nan"), **labels: object) -> float:
        """The number of that fact, or the default."""
        fact = self.get(quantity, **labels)
        return default if fact is None else fact.number

    def text(self, quantity: Quantity, default: str = "", **labels: object) -> str:
        """The word of that fact, or the default."""
        fact = self.get(quantity, **labels)
        return default if fact is None else str(fact.value)

    def series(self, quantity: Quantity) -> list[Series]:
        """Every series of this quantity."""
        return [s for s in self.all_series if s.quantity.name == quantity.name]

    def table(self, kind: str) -> list[Table]:
        """Every table of this kind."""
        return [t for t in self.tables if t.kind == kind]

    def scopes(self, label: str) -> Iterator[Scope]:
        """Each distinct scope that carries this label, in order of appearance."""
        seen: set[Scope] = set()
        for facts in list(self.facts.values()):
            for fact in facts:
                if getattr(fact.scope, label) is not None and fact.scope not in seen:
                    seen.add(fact.scope)
                    yield fact.scope

    def within(self, scope: Scope) -> Evidence:
        """A view with the facts of exactly this scope first in line, the run-wide ones kept."""
        view = Evidence(inputs=self.inputs, formats=self.formats, notes=self.notes)
        for name, facts in self.facts.items():
            mine = [f for f in facts if f.scope == scope]
            wide = [f for f in facts if not f.scope.to_dict()]
            if mine or wide:
                view.facts[name] = mine or wide
        view.all_series = [s for s in self.all_series if s.scope == scope]
        view.tables = [t for t in self.tables if t.scope == scope]
        view.ledgers = [x for x in self.ledgers if x.scope == scope]
        return view
