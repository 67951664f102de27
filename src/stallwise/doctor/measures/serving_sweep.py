"""Several benchmark results at different loads: what grew with the load, and what no longer did."""

from __future__ import annotations

import math
from collections.abc import Iterator

from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope
from stallwise.evidence.quantity import Quantity

ORDER = 2  # after the phases of a log
MORE_LOAD = 1.2  # loads nearer than this are the same point measured twice
PLATEAU_GROWTH = 1.05  # a rate that grows by less under more load has met a limit


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Growth from the lowest to the highest load; the rate at which it stops."""
    points = sorted((load, scope) for scope in _runs(evidence) if (load := _load(evidence, scope)) is not None)
    if len(points) < 2:
        yield from _then_and_now(evidence)
    if len(points) < 2 or points[0][0] <= 0.0 or points[-1][0] < MORE_LOAD * points[0][0]:
        return
    low, high = points[0][1], points[-1][1]
    source = (
        _of(evidence, serving.TTFT, high) or _of(evidence, serving.ACHIEVED_RATE, high) or _any(evidence, high)
    ).source
    yield Fact(serving.LOAD_GROWTH, points[-1][0] / points[0][0], source, samples=len(points))
    pairs = (
        (serving.TTFT, serving.TTFT_GROWTH),
        (serving.TPOT, serving.TPOT_GROWTH),
        (serving.ACHIEVED_RATE, serving.RATE_GROWTH),
    )
    for quantity, growth in pairs:
        before, after = _of(evidence, quantity, low), _of(evidence, quantity, high)
        if before and after and before.number > 0:
            yield Fact(growth, after.number / before.number, after.source, samples=len(points))
    for (load, scope), (more, beyond) in zip(points, points[1:], strict=False):
        first, second = (
            _of(evidence, serving.ACHIEVED_RATE, Scope(run=scope)),
            _of(evidence, serving.ACHIEVED_RATE, Scope(run=beyond)),
        )
        if first and second and more >= MORE_LOAD * load and second.number < PLATEAU_GROWTH * first.number:
            yield Fact(serving.PLATEAU_RATE, second.number, second.source)
            return


def _then_and_now(evidence: Evidence) -> Iterator[Item]:
    """The same growth where a statement, or the phases of a log, tell of a calm before and a load now."""
    ttft, tpot = (_pair(evidence, q) for q in (serving.TTFT, serving.TPOT))
    speed = _pair(evidence, serving.PER_REQUEST_RATE)
    if tpot is None and speed is not None and speed[1].number > 0:
        slower = speed[0].number / speed[1].number
    else:
        slower = tpot[1].number / tpot[0].number if tpot and tpot[0].number > 0.0 else float("nan")
    loads = (
        _pair(evidence, q)
        for q in (serving.OFFERED_RATE, serving.CONCURRENCY, serving.ACHIEVED_RATE, serving.RUNNING, serving.WAITING)
    )
    load = next(
        (after.number / before.number for before, after in filter(None, loads) if before.number > 0.0), float("nan")
    )
    if not load >= MORE_LOAD or ttft is None:
        return
    source = ttft[1].source
    yield Fact(serving.LOAD_GROWTH, load, source)
    if ttft[0].number > 0.0:
        yield Fact(serving.TTFT_GROWTH, ttft[1].number / ttft[0].number, source)
    if slower == slower:
        yield Fact(serving.TPOT_GROWTH, slower, source)


def _pair(evidence: Evidence, quantity: Quantity) -> tuple[Fact, Fact] | None:
    before = next((f for f in evidence.all(quantity) if f.scope.run == "before" and f.number > 0), None)
    after = next((f for f in evidence.all(quantity) if f.scope.run is None and f.number > 0), None)
    return (before, after) if before and after else None


def _runs(evidence: Evidence) -> list[str]:
    return list(dict.fromkeys(f.scope.run for f in evidence.all(serving.ACHIEVED_RATE) if f.scope.run))


def _load(evidence: Evidence, run: str) -> float | None:
    """The rate that was offered, or the requests kept in flight, or (where neither is said) what was achieved."""
    for quantity in (serving.OFFERED_RATE, serving.CONCURRENCY, serving.ACHIEVED_RATE):
        fact = _of(evidence, quantity, run)
        if fact is not None and math.isfinite(fact.number):
            return fact.number
    return None


def _of(evidence: Evidence, quantity: Quantity, run: str | Scope) -> Fact | None:
    name = run.run if isinstance(run, Scope) else run
    return next((f for f in evidence.all(quantity) if f.scope.run == name), None)


def _any(evidence: Evidence, run: str) -> Fact:
    return next(f for f in evidence.all(serving.ACHIEVED_RATE) if f.scope.run == run)
