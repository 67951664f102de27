"""Which moved first, the update, the gradient or the loss, at which step, and whether it came back."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.catalog import numerics as n
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Series, Source
from stallwise.evidence.quantity import Quantity

Values = NDArray[np.float64]
ORDER = 5
WINDOW = 30  # steps before that say what is usual
LATEST = 8  # of them, which a value is compared with
STEP_TO_SIGMA = 0.954  # median step between neighbours over the standard deviation, for normal noise
MIN_BEFORE = 3  # values that must have been usual; fewer say nothing of noise
LEAVES = {run.LOSS.name: 1.03, run.GRAD_NORM.name: 1.45, run.UPDATE_NORM.name: 1.45}  # times the usual value
SMALL_GAIN = 0.01  # of the loss at the start
DEVIATIONS = 6.0  # and so many median deviations beyond it
# The fewer values tell the noise, the further away is far: Student's t of the same chance (1 in 2,000) by values seen.
FEW_DEVIATIONS = {3: 31.6, 4: 12.9, 5: 8.6, 6: 6.9}
CALMER = 2.0  # times as noisy as it looks a window of a long log may be, by chance
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
        if name == run.LOSS.name:
            away &= ~(series.values - np.nan_to_num(series.values / ratio) < _smallest(series.values))
        noise = _relative_noise(series.values[: int(np.argmax(away))]) if away.any() else 0.0  # of what came before
        away &= ~(np.log(np.where(ratio > 0, ratio, np.nan)) < DEVIATIONS * noise)
        finite = ratio[np.isfinite(ratio)]
        if len(finite):
            yield Fact(PEAKS[name], float(finite.max()), series.source)
        placed = np.flatnonzero(away & np.isfinite(series.x))  # without its step nothing comes before anything
        onsets += [(float(series.x[i]), WORDS[name], float(ratio[i])) for i in placed]
    if onsets:
        yield from _spikes(sorted(onsets), found)


def _smallest(values: Values) -> float:
    """What a loss must gain to be worth a word: a loss that fell to a thousandth of its start doubles by rounding."""
    begun = values[np.isfinite(values)][:MIN_BEFORE]
    return SMALL_GAIN * float(np.median(np.abs(begun))) if len(begun) else 0.0


def _relative_noise(values: Values) -> float:
    """Of the logarithm from one value to the next: where a batch of a few samples varies by factors, a factor is nothing unusual."""
    steps = np.abs(np.diff(np.log(values[np.isfinite(values) & (values > 0)])))
    return float(np.median(steps)) / STEP_TO_SIGMA if len(steps) else 0.0


def _longest(evidence: Evidence, quantity: Quantity) -> Series | None:
    return max(evidence.series(quantity), key=lambda s: len(s.x), default=None)


def _away(series: Series, factor: float) -> tuple[Values, NDArray[np.bool_]]:
    """Each value over what was usual before it, and whether it left that range; inf and NaN leave it.

    What left is not usual for those after it. Where nothing left within the window, all values are judged at once.
    """
    values, length = series.values.tolist(), len(series.values)
    steps = np.abs(np.diff(series.values[np.isfinite(series.values)]))
    of_all = float(np.median(steps)) / STEP_TO_SIGMA if len(steps) else 0.0
    usual_ratio, usual_away = _judged_at_once(series.values, factor, of_all)
    leaving = np.flatnonzero(usual_away | ~np.isfinite(series.values)).tolist()
    ratio: list[float] = []
    away: list[bool] = []
    places: list[int] = []  # of usual values, the values, and the jump to each from the one before
    usual: list[float] = []
    jumps: list[float] = []
    usual_run = 0  # usual values before the next one without a break
    while (at := len(ratio)) < length:
        place = bisect_left(leaving, at) if usual_run > WINDOW else len(leaving)
        until = leaving[place] if place < len(leaving) else length
        if usual_run > WINDOW and until > at:
            ratio += usual_ratio[at:until].tolist()
            away += [False] * (until - at)
            places, usual = list(range(until - WINDOW, until)), values[until - WINDOW : until]
            jumps = [0.0, *(abs(b - a) for a, b in pairwise(usual))]
            continue
        first = bisect_left(places, at - WINDOW, max(0, len(places) - WINDOW))
        value = values[at]
        found, left = _judged(value, usual[first:][-LATEST:], jumps[first + 1 :], factor, of_all)
        ratio.append(found)
        away.append(left)
        usual_run = 0 if left else usual_run + 1
        if not left:
            jumps.append(abs(value - usual[-1]) if usual else 0.0)
            usual.append(value)
            places.append(at)
    return np.array(ratio), np.array(away, dtype=bool)


def _judged(value: float, latest: list[float], jumps: list[float], factor: float, of_all: float) -> tuple[float, bool]:
    """A value against the latest before it and the jumps between all of them."""
    if not math.isfinite(value):
        return math.nan, True
    if len(jumps) + 1 < MIN_BEFORE:
        return math.nan, False
    # A falling curve is judged against its latest part, a noisy one against its middle.
    middle = _middle(latest)
    ratio = value / middle if middle > 0 else math.nan
    if value <= middle * factor:
        return ratio, False
    # Steps from one value to the next tell the noise of a curve that falls as a whole.
    here = _middle(jumps) / STEP_TO_SIGMA
    # Among the windows of a long log some look calmer by chance: the whole log knows better.
    spread = max(here, min(of_all, CALMER * here)) or abs(middle) * 1e-3
    return ratio, value - middle > FEW_DEVIATIONS.get(len(jumps) + 1, DEVIATIONS) * spread


def _middle(values: list[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def _judged_at_once(values: Values, factor: float, of_all: float) -> tuple[Values, NDArray[np.bool_]]:
    """The same for all values, as if all before them were usual; the first of them are not judged."""
    ratio, away = np.full(len(values), np.nan), np.zeros(len(values), dtype=bool)
    if len(values) <= WINDOW:
        return ratio, away
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        usual = _middles(values[WINDOW - LATEST : -1], LATEST)
        here = _middles(np.abs(np.diff(values))[:-1], WINDOW - 1) / STEP_TO_SIGMA
        spread = np.maximum(here, np.minimum(of_all, CALMER * here))
        spread = np.where(spread == 0, np.abs(usual) * 1e-3, spread)
        now = values[WINDOW:]
        ratio[WINDOW:] = np.where(usual > 0, now / usual, np.nan)
        away[WINDOW:] = (now > usual * factor) & (now - usual > DEVIATIONS * spread)
    return ratio, away


def _middles(values: Values, width: int) -> Values:
    """The median of each stretch of this width."""
    ordered = np.sort(np.lib.stride_tricks.sliding_window_view(values, width), axis=1)
    return (ordered[:, (width - 1) // 2] + ordered[:, width // 2]) / 2


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
        back = _comes_back(loss, [g[-1][0] for g in spikes])
        yield Fact(n.RECOVERED, sum(back) / len(back), source)


def _first(group: list[tuple[float, str, float]]) -> str:
    """The word whose onset is earliest; together, the one that cannot be a consequence of the others."""
    start = group[0][0]
    together = {word for step, word, _ in group if step == start}
    return next(w for w in ("loss", "gradient", "update") if w in together) if len(together) > 1 else together.pop()


def _spacing(found: dict[str, Series]) -> float:
    gaps = [float(np.median(np.diff(s.x))) for s in found.values() if len(s.x) > 2]
    return min((g for g in gaps if g > 0), default=1.0)


def _comes_back(loss: Series, steps: list[float]) -> list[bool]:
    """Whether the loss is where it was soon after each of these steps."""
    order = np.argsort(loss.x, kind="stable")
    x, values = loss.x[order], loss.values[order]
    known = x == x
    x, values = x[known], values[known]
    back, listed_values = [], values.tolist()
    for first, last in zip(np.searchsorted(x, steps), np.searchsorted(x, steps, "right"), strict=True):
        before = [v for v in listed_values[max(first - 40, 0) : first] if math.isfinite(v)]
        after = listed_values[last : last + 20]
        whole = bool(before) and bool(after) and all(map(math.isfinite, after))
        back.append(whole and min(after) <= _middle(before) * 1.05)
    return back


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
    for before, after in pairwise(values[_search_ends(values) :].astype(float)):
        fell = before > after > 0 and before / after < LARGEST_DROP
        run_length = run_length + round(float(np.log2(before / after))) if fell else 0 if after > before else run_length
        best = max(best, run_length)
    yield Fact(n.SCALE_HALVINGS, float(best), series.source, samples=len(values))
    if len(values):
        yield Fact(n.SCALE_LAST, float(values[-1]), series.source)


def _search_ends(values: NDArray[np.float64]) -> int:
    """Where the scaler has found its level: it starts far too high, halves step by step, and then holds at least as long.

    Until then skipped steps are how it searches. One that never holds is not searching.
    """
    moves = np.diff(values)
    rises, falls = np.flatnonzero(moves > 0), np.flatnonzero(moves < 0)
    growth = int(rises[0]) if len(rises) else len(moves)
    searching = falls[falls < growth]
    end = int(searching[-1]) + 1 if len(searching) else 0
    return end if growth - end >= end and end < len(values) and values[end] >= 1.0 else 0


def _zeros(evidence: Evidence) -> Iterator[Item]:
    series = _longest(evidence, n.ZERO_GRADS)
    if series is None or len(series.values) < 6:
        return
    part = max(len(series.values) // 5, 2)
    rise = float(np.median(series.values[-part:]) - np.median(series.values[:part]))
    yield Fact(n.ZERO_GRADS_RISE, rise, series.source, samples=len(series.values))
