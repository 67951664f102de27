"""A service under several loads (results of a load test, rows of a table, or before and now): what grew with the load, and what no
longer did."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias

from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact
from stallwise.evidence.quantity import Quantity

ORDER = 2  # after the phases of a log
MORE_LOAD = 1.2  # loads nearer than this are the same point measured twice
PLATEAU_GROWTH = 1.05  # a rate that grows by less under more load has met a limit
SAME_PACE = 1.1  # of a token, from where the rate stands still on: no more run together than there
DOUBLED = 2.0  # the load, beyond that point
WAITS_LONGER = 4.0  # times: who joins waits, and does not run
BEFORE = "before"

Point: TypeAlias = dict[str, Fact]  # by quantity

LOADS = (serving.OFFERED_RATE, serving.CONCURRENCY, serving.ACHIEVED_RATE, serving.RUNNING, serving.WAITING)
FIRST = (serving.TTFT, serving.TTFT_TAIL, serving.REQUEST_TIME, serving.REQUEST_TAIL)
LATER = (serving.TPOT, serving.TPOT_TAIL, serving.PER_REQUEST_RATE)
RATES = (serving.ACHIEVED_RATE, serving.OUTPUT_RATE)
KNOWN = {q.name: q for q in (*LOADS, *FIRST, *LATER, *RATES)}


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Growth from the lowest to the highest load; the load at which the rate stops, and whether the batch does."""
    load, points = next(filter(None, (_by_load(points) for points in _sets(evidence))), (None, []))
    if load is None:
        return
    low, high = points[0], points[-1]
    source = next((high[q.name].source for q in (*FIRST, *RATES) if q.name in high), high[load.name].source)
    yield Fact(serving.LOAD_GROWTH, high[load.name].number / low[load.name].number, source, samples=len(points))
    for asked, growth in ((FIRST, serving.TTFT_GROWTH), (LATER, serving.TPOT_GROWTH), (RATES, serving.RATE_GROWTH)):
        if (found := _growth(low, high, asked)) is not None:
            yield Fact(growth, found, source, samples=len(points))
    if (rate := next((q for q in RATES if all(q.name in p for p in points) and q is not load), None)) is None:
        return
    for at, (less, more) in enumerate(pairwise(points)):
        beyond = high[load.name].number / less[load.name].number
        if more[rate.name].number < PLATEAU_GROWTH * less[rate.name].number:
            yield Fact(serving.PLATEAU_RATE, more[rate.name].number, source, note=rate.name)
            yield Fact(serving.PLATEAU_LOAD, less[load.name].number, source, note=load.name)
            pace, wait = _growth(less, high, LATER), _growth(points[max(at - 1, 0)], high, FIRST)
            held = pace is not None and 1 / SAME_PACE < pace < SAME_PACE and (wait or 0.0) > WAITS_LONGER
            if held and beyond >= DOUBLED and load is serving.CONCURRENCY:
                yield Fact(serving.PINNED_AT, less[load.name].number, source)
            return


def _sets(evidence: Evidence) -> Iterator[list[Point]]:
    """Points that belong together: the runs of a load test, a table's rows, before and now."""
    named: dict[str | None, Point] = {}
    for quantity in KNOWN.values():
        for fact in evidence.all(quantity):
            if fact.number > 0:
                named.setdefault(fact.scope.run, {}).setdefault(quantity.name, fact)
    loads = {q.name for q in LOADS}
    yield [point for run, point in named.items() if run and run != BEFORE and point.keys() & loads]
    for table in evidence.table(serving.LOAD_POINTS):
        known = {q: column for q, column in table.columns.items() if q in KNOWN}
        yield [
            {q: Fact(KNOWN[q], float(c[at]), table.source) for q, c in known.items() if c[at] > 0}
            for at in range(len(table))
        ]
    yield [named[run] for run in (BEFORE, None) if run in named]


def _by_load(points: list[Point]) -> tuple[Quantity, list[Point]] | None:
    """In the order of the load that all of them tell, one point each load (the first); None where they are of one load."""
    for quantity in LOADS:
        if any(quantity.name not in p or not math.isfinite(p[quantity.name].number) for p in points):
            continue
        rising: list[Point] = []
        for point in sorted(points, key=lambda p: p[quantity.name].number):
            if not rising or point[quantity.name].number >= MORE_LOAD * rising[-1][quantity.name].number:
                rising.append(point)
        if len(rising) > 1:
            return quantity, rising
    return None


def _growth(less: Point, more: Point, asked: tuple[Quantity, ...]) -> float | None:
    """How many times the first of these grew that both tell; of a rate of one request, by how much it fell."""
    for quantity in asked:
        if quantity.name in less and quantity.name in more:
            ratio = more[quantity.name].number / less[quantity.name].number
            return 1.0 / ratio if quantity is serving.PER_REQUEST_RATE else ratio
    return None
