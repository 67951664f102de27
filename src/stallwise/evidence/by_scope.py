"""What was found about each part of the world, so that a question about one kernel or rank does not look through all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from stallwise.evidence.fact import Fact, Scope


class Scoped(Protocol):
    """Whatever speaks of a part of the world."""

    @property
    def scope(self) -> Scope: ...


T = TypeVar("T", bound=Scoped)


def by_scope(items: Iterable[T]) -> dict[Scope, list[T]]:
    """Those of each scope, in their order."""
    found: dict[Scope, list[T]] = defaultdict(list)
    for item in items:
        found[item.scope].append(item)
    return found


def facts_by_scope(facts: Mapping[str, Sequence[Fact]]) -> dict[Scope, dict[str, list[Fact]]]:
    """The same of facts, by the names of their quantities."""
    found: dict[Scope, dict[str, list[Fact]]] = defaultdict(dict)
    for name, known in facts.items():
        for fact in known:
            found[fact.scope].setdefault(name, []).append(fact)
    return found


class ByLabel:
    """The facts of one quantity by one label of their scopes; sorted anew when there are others."""

    __slots__ = ("_facts", "_known", "_of", "_seen")

    def __init__(self, label: str) -> None:
        self._of, self._seen = label, 0
        self._facts: Sequence[Fact] = ()
        self._known: dict[object, list[Fact]] = {}

    def of(self, facts: Sequence[Fact], value: object) -> Sequence[Fact]:
        """Those whose label says this."""
        if facts is not self._facts or len(facts) != self._seen:
            self._facts, self._seen, self._known = facts, len(facts), defaultdict(list)
            for fact in facts:
                self._known[getattr(fact.scope, self._of)].append(fact)
        return self._known.get(value, ())


class Scopes:
    """Each distinct scope of a growing list of facts; only new facts are looked at."""

    __slots__ = ("_facts", "_found", "_seen")

    def __init__(self) -> None:
        self._facts: Sequence[Fact] = ()
        self._found: dict[Scope, None] = {}
        self._seen = 0

    def of(self, facts: Sequence[Fact]) -> list[Scope]:
        """In the order of their first facts."""
        if facts is not self._facts or len(facts) < self._seen:
            self._facts, self._seen, self._found = facts, 0, {}
        if len(facts) > self._seen:
            self._found.update(dict.fromkeys(fact.scope for fact in facts[self._seen :]))
            self._seen = len(facts)
        return list(self._found)
