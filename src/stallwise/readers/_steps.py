"""Collects values by step and hands them out as series with their medians as facts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import median

import numpy as np

from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import WHOLE, Fact, Scope, Series, Source
from stallwise.evidence.quantity import Quantity
from stallwise.readers._keys import Meaning
from stallwise.units import Unit

MIN_POINTS = 2  # one value is a fact, not a series


class StepValues:
    """Values by quantity and scope, each at a step (or second) and a place in the file."""

    def __init__(self, file: str, over: str = "step") -> None:
        self.file = file
        self.over = over
        self._points: dict[tuple[Quantity, Scope], dict[float, tuple[float, int]]] = defaultdict(dict)
        self._whole: dict[str, dict[float, tuple[float, int]]] = {}  # the same for the whole run: no scope to hash

    def __bool__(self) -> bool:
        return bool(self._points)

    def has(self, quantity: Quantity) -> bool:
        """True when this quantity was seen at all."""
        return any(q is quantity for q, _ in self._points)

    def put(self, meaning: Meaning, x: float, value: float, line: int, scope: Scope = WHOLE) -> None:
        """Takes one value as printed; units and inversion are applied here. The first value at a step stands."""
        number = value * meaning.scale
        if meaning.inverse:
            number = 1.0 / number if number > 0 else float("nan")
        if meaning.quantity.unit is Unit.SHARE and meaning.scale == 1.0 and number > 1.5:
            number /= 100.0  # "mfu: 41.2" without its percent sign
        if meaning.quantity.unit is Unit.BYTE and meaning.scale == 1.0 and 0 < number < 1e5:
            # Nobody logs a few bytes: a bare "memory 61.2" is GiB, a bare "memory 5300" is MiB.
            number *= 2.0**30 if number < 1000 else 2.0**20
        if scope is not WHOLE:
            points = self._points[meaning.quantity, scope]
        elif (known := self._whole.get(meaning.quantity.name)) is not None:
            points = known
        else:
            points = self._whole[meaning.quantity.name] = self._points[meaning.quantity, scope]
        points.setdefault(x, (number, line))

    def items(self) -> Iterator[Item]:
        """Series in order of step, and the median of each as a fact."""
        for (quantity, scope), points in self._points.items():
            xs = sorted(points)
            values = np.array([points[x][0] for x in xs])
            lines = [points[x][1] for x in xs]
            where = f"line {min(lines)}" if len(lines) == 1 else f"lines {min(lines)}-{max(lines)}"
            source = Source(self.file, where)
            if len(xs) >= MIN_POINTS:
                yield Series(quantity, np.array(xs, dtype=float), values, source, scope, self.over)
            finite = values[np.isfinite(values)]
            if len(finite):
                yield Fact(quantity, float(median(finite)), source, scope, samples=len(finite))
            if quantity is run.LOSS:
                yield from self._nan(xs, values, lines, scope)

    def _nan(self, xs: list[float], values: np.ndarray, lines: list[int], scope: Scope) -> Iterator[Item]:
        bad = np.flatnonzero(~np.isfinite(values))
        yield Fact(run.NAN_STEPS, float(len(bad)), Source(self.file), scope, samples=len(values))
        if len(bad):
            first = int(bad[0])
            yield Fact(run.FIRST_NAN_STEP, xs[first], Source(self.file, f"line {lines[first]}"), scope)
