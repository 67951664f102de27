"""What changed over the steps of a log: a slow start, isolated slow steps and their period, a drop, a drift, growth."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.doctor.measures._robust import (
    MIN_POINTS,
    Values,
    best_shift,
    events,
    line_residual,
    monotony,
    regularity,
    segments,
    spikes,
    spread,
)
from stallwise.evidence.catalog import change, run
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Series
from stallwise.evidence.quantity import Quantity

ORDER = -10  # others build on these
WARM_RATIO = 1.5  # a first step that is slower than the steady one by this is warm-up
MAX_WARM = 5  # more slow steps than this at the start are not warm-up but a change
CHANGED = 1.08  # smaller changes of level are within what neighbours on a cluster do to a run
CLEAR_SIGMAS = 4.0  # and they must stand out of the noise by this
MONOTONE = 0.7  # Spearman with time above which a series is said to drift
GREW = 1.1  # memory that grew by less is warm-up of caches
FEW_POINTS, SHORT_GREW = 4, 1.4  # a log of a few epochs must show more
STILL_RISING = 0.3  # slope of the last half over the whole: below it the growth has levelled off
# A leak rises in every part of the log. A maximum over sizes that vary by chance never falls either, but in three of four
# equal parts of the last half it sets a new record once in sixty times (in a part from a to b the odds are 1 - a/b).
PARTS, RISING_PARTS = 4, 3
AT_STEP = 2.0  # a collection this close to a slow step is the same event


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts about each series of step times (or of throughput where no step time is logged) and of memory."""
    timed = False
    for series in evidence.series(run.STEP_TIME):
        if len(series.x) >= MIN_POINTS and series.over == "step":
            timed = True
            yield from _step_times(series, series.values, evidence)
    if not timed:
        for quantity in (run.TOKENS_PER_S, run.SAMPLES_PER_S, run.MFU):
            rates = [s for s in evidence.series(quantity) if len(s.x) >= MIN_POINTS and s.over in ("step", "time_s")]
            for series in rates[:1]:
                positive = np.where(series.values > 0, series.values, np.nan)
                yield from _step_times(series, 1.0 / positive, evidence, relative=True)
            if rates:
                timed = True
                break
    if not timed:
        for series in evidence.series(run.EPOCH_TIME)[:1]:
            yield from _step_times(series, series.values, evidence, relative=True)
    yield from _growths(evidence)
    yield from _loading(evidence)


def _loading(evidence: Evidence) -> Iterator[Item]:
    """The loader's part of all time, where the log prints both for each step: medians would miss bursts."""
    for data in evidence.series(run.DATA_TIME):
        steps = [
            s for s in evidence.series(run.STEP_TIME) if s.source.file == data.source.file and len(s.x) == len(data.x)
        ]
        if steps and not evidence.all(run.DATA_SHARE):
            warm = _warm_steps(steps[0].values)  # the first batch waits until the workers have started
            share = float(np.nansum(data.values[warm:]) / np.nansum(steps[0].values[warm:]))
            yield Fact(run.DATA_SHARE, min(share, 1.0), data.source, data.scope, samples=len(data.x))


def _step_times(series: Series, times: Values, evidence: Evidence, relative: bool = False) -> Iterator[Item]:
    keep = np.isfinite(times) & (times > 0)
    x, values = series.x[keep], times[keep]
    if len(values) < MIN_POINTS:
        return

    def fact(quantity: Quantity, value: float) -> Fact:
        return Fact(quantity, value, series.source, series.scope, samples=len(values))

    yield fact(change.STEPS_LOGGED, float(len(values)))
    warm = _warm_steps(values)
    steady = float(np.median(values[warm:]))
    if warm and not _as_slow_again(values, warm, steady):
        yield fact(change.FIRST_STEPS_RATIO, float(values[:warm].mean() / steady))
        if not relative:
            yield fact(change.FIRST_STEPS_EXCESS, float((values[:warm] - steady).sum()))
    x, values = x[warm:], values[warm:]
    slow = spikes(values)
    usual = np.delete(values, slow)
    if len(usual) < MIN_POINTS:
        return
    yield fact(change.STEADY_STEP, float(np.median(usual)))
    if len(slow):
        yield from _stalls(series, x, values, slow, evidence, relative)
    yield from _level(np.delete(x, slow), usual, fact)


def _warm_steps(values: Values) -> int:
    """How many steps at the start are slower than what follows."""
    steady = float(np.median(values[min(MAX_WARM, len(values) // 2) :]))
    count = 0
    while count < min(MAX_WARM, len(values) // 3) and values[count] > WARM_RATIO * steady:
        count += 1
    return count


def _as_slow_again(values: Values, warm: int, steady: float) -> bool:
    """A first step that is slow because something makes every n-th step slow is no warm-up."""
    again = spikes(values[warm:])
    return len(again) >= 2 and float(values[warm:][again].max() - steady) > 0.25 * float(values[:warm].max() - steady)


def _stalls(
    series: Series, x: Values, values: Values, slow: np.ndarray, evidence: Evidence, relative: bool
) -> Iterator[Item]:
    usual = float(np.median(np.delete(values, slow)))
    excess = values[slow] - usual
    source, scope, began = series.source, series.scope, events(slow)
    n = len(began)
    yield Fact(change.STALL_COUNT, float(n), source, scope)
    if not relative:
        yield Fact(change.STALL_EXCESS, float(np.median(excess)), source, scope, samples=n)
    yield Fact(change.STALL_SHARE, float(excess.sum() / values.sum()), source, scope, samples=n)
    if n >= 3:
        period, regular = regularity(x[began])
        if np.isfinite(period):
            yield Fact(change.STALL_PERIOD, period, source, scope, samples=n)
            yield Fact(change.STALL_REGULARITY, regular, source, scope, samples=n)
    for data in evidence.series(run.DATA_TIME):
        waits = dict(zip(data.x.tolist(), data.values.tolist(), strict=True))
        usual_wait = float(np.median(data.values))
        seen = [
            (waits[s] - usual_wait, e) for s, e in zip(x[slow].tolist(), excess.tolist(), strict=True) if s in waits
        ]
        over = sum(e for _, e in seen)
        if over > 0 and not relative:
            share = sum(w for w, _ in seen) / over
            share = float(min(max(share, 0.0), 1.0))
            yield Fact(change.STALL_IN_DATA, share, data.source, scope, samples=len(seen))
            late = share * float(excess.sum() / values.sum())
            yield Fact(change.LATE_BATCH_SHARE, late, data.source, scope, samples=len(seen))
    spacing = float(np.median(np.diff(x))) if len(x) > 1 else 1.0  # logs that print every tenth step know no better
    for event, coincides in (
        (run.GC_PAUSE, change.STALL_AT_GC),
        (run.SAVES, change.STALL_AT_SAVE),
        (run.EVALS, change.STALL_AT_EVAL),
    ):
        for moments in evidence.series(event):
            near = sum(bool(np.min(np.abs(moments.x - s)) <= max(AT_STEP, spacing)) for s in x[began])
            yield Fact(coincides, near / n, moments.source, scope, samples=n)


def _level(x: Values, values: Values, fact: object) -> Iterator[Item]:
    """One change of level, or one steady drift, whichever fits better."""
    make = fact
    shift = best_shift(values)
    noise = spread(np.diff(values)) / np.sqrt(2.0)
    drift, drift_left, drifting = 1.0, np.inf, False
    if monotony(values) > MONOTONE:
        start, end, drift_left = line_residual(x, values)
        drift = end / start if start > 0 else 1.0
        drifting = drift > CHANGED and end - start > CLEAR_SIGMAS * noise
    assert callable(make)
    if shift is not None and shift.before > 0:
        jump = shift.after / shift.before
        shifted = jump > CHANGED and shift.after - shift.before > CLEAR_SIGMAS * noise
        if shifted and (not drifting or shift.residual < drift_left):
            yield make(change.DROP_RATIO, jump)
            yield make(change.DROP_STEP, float(x[shift.index]))
            return
    if drifting:
        yield make(change.DRIFT_RATIO, drift)


_GROWING: tuple[tuple[Quantity, Quantity | None, Quantity], ...] = (
    (run.GPU_MEMORY, change.GPU_MEMORY_GROWTH, change.GPU_MEMORY_FACTOR),
    (run.HOST_MEMORY, change.HOST_MEMORY_GROWTH, change.HOST_MEMORY_FACTOR),
    (run.GRAPH_NODES, None, change.OBJECT_GROWTH),
)


def _growths(evidence: Evidence) -> Iterator[Item]:
    for quantity, growth, factor in _GROWING:
        for series in evidence.series(quantity):
            keep = np.isfinite(series.values)
            x, values = series.x[keep], series.values[keep]
            if len(values) < MIN_POINTS and len(values) >= FEW_POINTS and values[0] > 0:
                yield from _short_growth(series, values, growth, factor)
            if len(values) < MIN_POINTS or values[0] <= 0:
                continue
            start, end, _ = line_residual(x, values)
            half = len(values) // 2
            late_start, late_end, _ = line_residual(x[half:], values[half:])
            rising = (
                end > start and late_end - late_start > STILL_RISING * (end - start) / 2 and _all_along(values[half:])
            )
            ratio = end / max(start, 1e-12) if rising and monotony(values) > MONOTONE else _sawtooth(values)
            yield Fact(factor, ratio, series.source, series.scope, samples=len(values))
            if growth is not None and ratio > GREW:
                yield Fact(
                    growth,
                    (ratio - 1.0) * max(start, float(values.min())),
                    series.source,
                    series.scope,
                    samples=len(values),
                )
    for series in evidence.series(run.ALLOC_RETRIES):
        gained = float(np.nanmax(series.values) - np.nanmin(series.values))
        yield Fact(change.RETRIES_AT_DROP, gained, series.source, series.scope, samples=len(series.x))


def _all_along(values: Values) -> bool:
    """Whether most parts of a series end higher than all that came before them."""
    ends = np.linspace(0, len(values) - 1, PARTS + 1).round().astype(int)
    highs = np.maximum.accumulate(values)[ends]
    return int((np.diff(highs) > 0).sum()) >= RISING_PARTS


def _short_growth(series: Series, values: Values, growth: Quantity | None, factor: Quantity) -> Iterator[Item]:
    """A handful of points (one an epoch): only a large rise that never falls back counts."""
    ratio = float(values[-1] / values[0])
    steady = bool(np.all(np.diff(values) > -0.02 * values[:-1]))
    yield Fact(
        factor, ratio if steady and ratio > SHORT_GREW else 1.0, series.source, series.scope, samples=len(values)
    )
    if growth is not None and steady and ratio > SHORT_GREW:
        yield Fact(growth, float(values[-1] - values[0]), series.source, series.scope, samples=len(values))


def _sawtooth(values: Values) -> float:
    """Growth inside each tooth where memory is freed now and then; 1 when the teeth do not cover most of the log."""
    teeth = [t for t in segments(values) if len(t) >= MIN_POINTS]
    rising = [t for t in teeth if t[-1] > GREW * t[0] and monotony(t) > 0.9]
    if len(teeth) < 2 or sum(map(len, rising)) < 0.6 * len(values):
        return 1.0
    return float(np.median([t[-1] / t[0] for t in rising]))
