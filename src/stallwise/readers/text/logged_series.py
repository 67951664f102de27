"""What a training loop prints again and again, named: a series for each quantity, its middle, and how often the loss was no number."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import WHOLE, Fact, Scope, Series, Source
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.reading import Curve, Printed
from stallwise.late import np
from stallwise.readers.text.loop import column_of, printed
from stallwise.readers.text.name import Name
from stallwise.readers.text.value import all_in_si
from stallwise.readers.text.words import words_of
from stallwise.units import Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

LASTING = 2  # logged steps
SMALLER = (1.0, 1e-3, 1e-6, 1e-9)  # seconds and less
TOO_LONG = 30.0  # times what the stamps say a step takes: between units a thousand lies, and lines may tell of ten steps together
MIN_POINTS = 2  # one value is a fact, not a series
Points = list[tuple[Name, Curve]]


def named(log: Printed) -> Iterator[Item]:
    """Series in the order of the steps and the median of each as a fact. The first value at a step stands."""
    named_curves = [(name, curve) for curve in log.curves(_wanted(log)) if (name := _name(log, curve)) is not None]
    found = [(name, curve) for name, curve in named_curves if curve.rank is None]
    stepless = not any(n.quantity is run.STEP_TIME for n, _ in found)
    bare = [(n, c) for n, c in found if _is_bare(n)]
    clocked = log.by_clock() if log.by_clock is not None and (stepless or bare) else None
    if clocked is not None and bare:
        smaller = _by_the_clock(bare, clocked)
        found = [(_in_smaller(n, smaller), c) for n, c in found]
    if clocked is not None and stepless and (name := column_of(clocked.key, clocked.unit)) is not None:
        found.append((name, clocked))
    best: dict[str, float] = defaultdict(float)
    for name, _ in found:
        best[name.quantity.name] = max(best[name.quantity.name], name.score)
    twins = Counter(n.quantity.name for n, _ in found) if log.variants else Counter()
    points: dict[tuple[Quantity, Scope], Points] = defaultdict(list)
    for name, curve in found:
        twin = twins[name.quantity.name] > 1
        if not twin and name.score < best[name.quantity.name]:
            continue  # of several losses the plain or total one counts, not its parts
        if len(curve.points):
            points[name.quantity, Scope(run=" ".join(words_of(curve.key))) if twin else WHOLE].append((name, curve))
    for (quantity, scope), own in points.items():
        yield from _items(quantity, scope, own, log)
    for name, curve in named_curves:
        if curve.rank is not None and name.quantity.unit is Unit.SECOND:  # what each rank took
            values = all_in_si(name, curve.points[:, 1])
            source = Source(log.file, f"lines {curve.points[0, 2]:.0f}-{curve.points[-1, 2]:.0f}")
            yield Fact(name.quantity, float(np.median(values)), source, Scope(rank=curve.rank), samples=len(values))


def _by_the_clock(bare: Points, clocked: Curve) -> float:
    """What durations without a unit must be taken as, so that no part of a step is longer than the stamps leave for it."""
    longest = max(float(np.nanmedian(c.points[:, 1])) * n.scale for n, c in bare)
    step_s = float(np.median(clocked.points[:, 1]))
    return next((f for f in SMALLER if longest * f <= TOO_LONG * step_s), 1.0)


def _is_bare(name: Name) -> bool:
    """A duration that nobody gave a unit."""
    return name.quantity.unit is Unit.SECOND and not name.unit_known


def _in_smaller(name: Name, factor: float) -> Name:
    return name._replace(scale=name.scale * factor) if _is_bare(name) else name


def _wanted(log: Printed):  # type: ignore[no-untyped-def]
    if log.table:
        return lambda key, unit, bare: column_of(key, unit) is not None
    return lambda key, unit, bare: printed(key, unit, bare) is not None


def _name(log: Printed, curve: Curve) -> Name | None:
    found = column_of(curve.key, curve.unit) if log.table else printed(curve.key, curve.unit, curve.bare)
    return None if found is not None and curve.epoch and found.quantity is run.STEP_TIME else found


def _items(quantity: Quantity, scope: Scope, points: Points, log: Printed) -> Iterator[Item]:
    rows = [curve.points for _, curve in points]
    values = np.concatenate([all_in_si(name, r[:, 1]) for (name, _), r in zip(points, rows, strict=True)])
    xs, first = np.unique(np.concatenate([r[:, 0] for r in rows]), return_index=True)
    values, lines = values[first], np.concatenate([r[:, 2] for r in rows])[first].astype(int)
    noun = log.noun
    where = f"{noun} {lines[0]}" if len(lines) == 1 else f"{noun}s {lines.min()}-{lines.max()}"
    source = Source(log.file, where)
    if len(xs) >= MIN_POINTS:
        yield Series(quantity, xs, values, source, scope, log.over)
    finite = values[np.isfinite(values)]
    if len(finite):
        yield Fact(quantity, float(np.median(finite)), source, scope, samples=len(finite))
    if quantity is run.LOSS:
        bad = np.flatnonzero(~np.isfinite(values))
        yield Fact(run.NAN_STEPS, float(len(bad)), Source(log.file), scope, samples=len(values))
        if len(bad):
            yield Fact(run.FIRST_NAN_STEP, float(xs[bad[0]]), Source(log.file, f"{noun} {lines[bad[0]]}"), scope)
    if quantity is run.GRAD_NORM:
        yield from _dead_gradient(xs, values, lines, log, scope)


def _dead_gradient(
    xs: NDArray[np.float64], values: NDArray[np.float64], lines: NDArray[np.int64], log: Printed, scope: Scope
) -> Iterator[Item]:
    """Gradients that are no numbers up to the end of the log: a scaler's search leaves such steps behind it, a dead run does not."""
    numbers = np.flatnonzero(np.isfinite(values))
    dead = len(values) - (int(numbers[-1]) + 1 if len(numbers) else 0)
    if dead >= LASTING and np.isnan(values[-1]):
        first = Source(log.file, f"{log.noun} {lines[-dead]}")
        yield Fact(run.NAN_GRADIENTS, float(dead), first, scope, samples=len(values))
        yield Fact(run.FIRST_NAN_STEP, float(xs[-dead]), first, scope)
