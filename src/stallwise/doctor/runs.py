"""Several files of one thing are told apart: traces that nobody numbered by their file, pages of two services by their load."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from stallwise.doctor.reading import Reading
from stallwise.evidence.bag import Bag
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Note, Scope, Source, Table
from stallwise.evidence.ledger import Ledger
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.unread import Unread

BEFORE = "before"
MORE_LOAD = 1.2  # times: loads nearer than this are the same one


def separate_runs(readings: list[Reading]) -> list[Reading]:
    """Gives the items of readings that claim the same place in the run a `run` label: the name of their file.

    Of two pages of one model, each of a process of its own, the one with the lighter load is `before`: the same under two loads.
    """
    _under_two_loads(readings)
    places = {at: place for at, reading in enumerate(readings) if (place := _place(reading)) is not None}
    crowded = {place for place, count in Counter(places.values()).items() if count > 1}
    for at, place in places.items():
        if place in crowded:
            reading = readings[at]
            reading.items = [_labelled(item, reading.name) for item in reading.items]
    return readings


def _under_two_loads(readings: list[Reading]) -> None:
    pages = [(reading, found) for reading in readings if (found := _page(reading)) is not None]
    if len(pages) != 2 or pages[0][1].model != pages[1][1].model:
        return
    (light, of_light), (_, of_heavy) = sorted(pages, key=lambda p: p[1].inside)
    if of_heavy.inside < MORE_LOAD * max(of_light.inside, 1.0):
        return
    light.items = [
        _labelled(item, BEFORE)
        for item in light.items
        if not (isinstance(item, Table) and item.kind == serving.ENGINE_SAMPLES)
    ]
    light.items += [Fact(q, x, of_light.source, Scope(run=BEFORE)) for q, x in of_light.state if x == x]


class _Page(NamedTuple):
    """One reading of an engine's metrics."""

    inside: float
    model: str
    state: tuple[tuple[Quantity, float], ...]
    source: Source


def _page(reading: Reading) -> _Page | None:
    tables = [i for i in reading.items if isinstance(i, Table) and i.kind == serving.ENGINE_SAMPLES]
    timed = any(isinstance(i, Fact) and i.quantity is serving.TTFT for i in reading.items)
    if len(tables) != 1 or len(tables[0]) != 1 or not timed:
        return None
    running, waiting = (float(tables[0].columns[c][0]) for c in ("running", "waiting"))
    model = next((str(i.value) for i in reading.items if isinstance(i, Fact) and i.quantity is serving.MODEL), "")
    inside = sum(x for x in (running, waiting) if x == x)
    return _Page(inside, model, ((serving.RUNNING, running), (serving.WAITING, waiting)), tables[0].source)


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
