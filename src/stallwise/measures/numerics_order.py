"""Which moved first, the update, the gradient or the loss, at which step, and whether it came back."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Iterator
from statistics import median

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.catalog import numerics as n
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Series, Source
from stallwise.evidence.quantity import Quantity

ORDER = 5
WINDOW = 30  # steps before that say what is usual
MIN_BEFORE = 3  # values that must have been usual; fewer say nothing of noise
LEAVES = {run.LOSS.name: 1.03, run.GRAD_NORM.name: 1.45, run.UPDATE_NORM.name: 1.45}  # times the usual value
DEVIATIONS = 6.0  # and so many median deviations beyond it
# The fewer values tell the noise, the further away is far: Student's t of the same chance (1 in 2,000) by values seen.
FEW_DEVIATIONS = {3: 31.6, 4: 12.9, 5: 8.6, 6: 6.9}
LARGEST_DROP = 1e300  # a scale that falls further in one step is damage
SAME_SPIKE = 6  # steps within which onsets belong together
WORDS = {run.LOSS.name: "loss", run.GRAD_NORM.name: "gradient", run.UPDATE_NORM.name: "update"}
PEAKS = {run.LOSS.name: n.LOSS_RATIO, run.GRAD_NORM.name: n.GRAD_RATIO, run.UPDATE_NORM.name: n.UPDATE_RATIO}


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts about spikes, levels and the loss scale."""
    found = {q.name: s for q in (run.UPDATE_NORM, run.GRAD_NORM, run.LOSS) if (s := _longest(evidence, q)) is not None}
    yield from _levels(found)
    yield from _scale(evidence)
    yield from _zeros(evidence)
    onsets: list[tuple[float, str, float]] = []  # step, word, ratio
    for name, series in found.items():
        ratio, away = _away(series, LEAVES[name])
        finite = ratio[np.isfinite(ratio)]
        if len(finite):
            yield Fact(PEAKS[name], float(finite.max()), series.source)
        placed = np.flatnonzero(away & np.isfinite(series.x))  # without its step nothing comes before anything
        onsets += [(float(series.x[i]), WORDS[name], float(ratio[i])) for i in placed]
    if onsets:
        yield from _spikes(sorted(onsets), found)


def _longest(evidence: Evidence, quantity: Quantity) -> Series | None:
    return max(evidence.series(quantity), key=lambda s: len(s.x), default=None)


def _away(series: Series, factor: float) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Each value over what was usual before it, and whether it left that range; inf and NaN leave it."""
    values = series.values.tolist()
    ratio = np.full(len(values), np.nan)
    away = np.zeros(len(values), dtype=bool)
    before: deque[tuple[int, float]] = (
        deque()
    )  # usual values of the window; plain numbers, for a log has a hundred thousand
    jumps: deque[float] = deque()  # from each of them to the next
    ordered: list[float] = []  # the same by size
    for i, value in enumerate(values):
        while before and before[0][0] < i - WINDOW:
            before.popleft()
            if jumps:
                del ordered[bisect_left(ordered, jumps.popleft())]
        if not math.isfinite(value):
            away[i] = True
            continue
        if len(before) >= MIN_BEFORE:
            # A falling curve is judged against its latest part, a noisy one against its middle.
            usual = median([before[k][1] for k in range(-min(8, len(before)), 0)])
            # Steps from one value to the next tell the noise of a curve that falls as a whole; 0.954 makes it a deviation.
            spread = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2 / 0.954 or abs(usual) * 1e-3
            if usual > 0:
                ratio[i] = value / usual
            away[i] = value > usual * factor and value - usual > FEW_DEVIATIONS.get(len(before), DEVIATIONS) * spread
        if not away[i]:
            if before:
                jumps.append(abs(value - before[-1][1]))
                insort(ordered, jumps[-1])
            before.append((i, value))
    return ratio, away


def _spikes(onsets: list[tuple[float, str, float]], found: dict[str, Series]) -> Iterator[Item]:
    spacing = _spacing(found)
    groups: list[list[tuple[float, str, float]]] = []
    for onset in onsets:
        if groups and onset[0] - groups[-1][-1][0] <= SAME_SPIKE * spacing:
            groups[-1].append(onset)
        else:
            groups.append([onset])
    # A norm that jumps while the loss stays is noise of the norm.
    spikes = [g for g in groups if any(word == "loss" for _, word, _ in g)]
    if not spikes:
        return
    source = next(iter(found.values())).source
    movers = Counter(_first(g) for g in spikes)
    word, count = movers.most_common(1)[0]
    yield Fact(n.SPIKES, float(len(spikes)), source)
    yield Fact(n.FIRST_MOVER, word, source)
    yield Fact(n.LEADS, count / len(spikes), source)
    yield Fact(n.FIRST_STEP, spikes[0][0][0], Source(source.file, f"step {spikes[0][0][0]:.0f}"))
    lengths = [(g[-1][0] - g[0][0]) / spacing + 1 for g in spikes]
    yield Fact(n.SPIKE_STEPS, float(np.median(lengths)), source)
    loss = found.get(run.LOSS.name)
    if loss is not None:
        back = [_comes_back(loss, g[-1][0]) for g in spikes]
        yield Fact(n.RECOVERED, sum(back) / len(back), source)


def _first(group: list[tuple[float, str, float]]) -> str:
    """The word whose onset is earliest; together, the one that cannot be a consequence of the others."""
    start = group[0][0]
    together = {word for step, word, _ in group if step == start}
    return next(w for w in ("loss", "gradient", "update") if w in together) if len(together) > 1 else together.pop()


def _spacing(found: dict[str, Series]) -> float:
    gaps = [float(np.median(np.diff(s.x))) for s in found.values() if len(s.x) > 2]
    return min((g for g in gaps if g > 0), default=1.0)


def _comes_back(loss: Series, step: float) -> bool:
    after = loss.values[loss.x > step][:20]
    before = loss.values[loss.x < step][-40:]
    before, finite = before[np.isfinite(before)], after[np.isfinite(after)]
    if not len(finite) or len(finite) < len(after):
        return False
    return bool(np.min(finite) <= np.median(before) * 1.05) if len(before) else False


def _levels(found: dict[str, Series]) -> Iterator[Item]:
    gradient, loss = found.get(run.GRAD_NORM.name), found.get(run.LOSS.name)
    if gradient is not None and np.isfinite(gradient.values).any():
        yield Fact(n.GRAD_LEVEL, float(np.median(gradient.values[np.isfinite(gradient.values)])), gradient.source)
    if loss is not None:
        finite = loss.values[np.isfinite(loss.values)]
        if len(finite) >= 8:
            first, last = np.median(finite[:4]), np.median(finite[-4:])
            yield Fact(n.LOSS_PROGRESS, float((first - last) / abs(first)) if first else 0.0, loss.source)


def _scale(evidence: Evidence) -> Iterator[Item]:
    series = _longest(evidence, run.LOSS_SCALE)
    if series is None:
        return
    values = series.values[np.isfinite(series.values)]
    run_length = best = 0
    for before, after in zip(values, values[1:], strict=False):
        run_length = (
            run_length + round(float(np.log2(before / after)))
            if 0 < after < before < after * LARGEST_DROP
            else 0
            if after > before
            else run_length
        )
        best = max(best, run_length)
    yield Fact(n.SCALE_HALVINGS, float(best), series.source, samples=len(values))
    if len(values):
        yield Fact(n.SCALE_LAST, float(values[-1]), series.source)


def _zeros(evidence: Evidence) -> Iterator[Item]:
    series = _longest(evidence, n.ZERO_GRADS)
    if series is None or len(series.values) < 6:
        return
    part = max(len(series.values) // 5, 2)
    rise = float(np.median(series.values[-part:]) - np.median(series.values[:part]))
    yield Fact(n.ZERO_GRADS_RISE, rise, series.source, samples=len(series.values))
