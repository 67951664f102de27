"""Traces that nobody numbered: several without a rank, or several of one rank, are told apart by their file."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from stallwise.doctor.reading import Reading
from stallwise.evidence.bag import Bag
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Note, Scope
from stallwise.evidence.ledger import Ledger
from stallwise.evidence.unread import Unread


def separate_runs(readings: list[Reading]) -> list[Reading]:
    """Gives the items of readings that claim the same place in the run a `run` label: the name of their file."""
    places = {at: place for at, reading in enumerate(readings) if (place := _place(reading)) is not None}
    crowded = {place for place, count in Counter(places.values()).items() if count > 1}
    for at, place in places.items():
        if place in crowded:
            reading = readings[at]
            reading.items = [_labelled(item, reading.name) for item in reading.items]
    return readings


def _place(reading: Reading) -> Scope | None:
    """The part of the run whose whole time this reading accounts for; None for logs, samples and the like."""
    ledgers = [item.scope for item in reading.items if isinstance(item, Ledger) and item.unit != "request"]
    return min(ledgers, key=lambda s: len(s.to_dict()), default=None)


def _labelled(item: Item, name: str) -> Item:
    if isinstance(item, (Note, Unread, Bag)) or item.scope.run is not None:
        return item
    scope = replace(item.scope, run=name)
    if hasattr(item, "names"):  # a Timeline is not frozen
        item.scope = scope  # type: ignore[misc]
        return item
    return replace(item, scope=scope)
