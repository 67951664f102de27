"""The statistics of a trial: pairs of blocks, one as is and one changed; which comes first is random and balanced.

The difference of a pair is taken of logarithms, so that it is a ratio of step times. A machine that becomes slower or faster adds
the same to every pair with one order and takes it from every pair with the other: that part is fitted and removed. The interval
is Student's over what is left.
It is looked at several times, and each look spends its own part of the ten percent: whenever one stops, and for whatever
reason, all intervals looked at hold together nine times out of ten (Bonferroni over the looks).
"""

from __future__ import annotations

import math
import statistics
from typing import List, Sequence, Tuple

# How many pairs there are at each look, and the error each may make; together one in ten.
LOOKS = ((4, 0.010), (7, 0.015), (10, 0.015), (14, 0.020), (19, 0.020), (25, 0.020))
# Student's interval trusts in a bell curve. A machine that is now free and now busy has two levels instead, and a few pairs may
# all fall the same way by chance: once in 8 for four pairs, in 64 for seven. Fewer than that count only where all blocks of
# one side are faster than all of the other, by more than either side varies.
FEWEST_BY_SPREAD = 7
MOST_PAIRS = LOOKS[-1][0]
LEVEL = 1.0 - sum(error for _, error in LOOKS)
FINE = 0.01  # an interval of plus or minus one percent is as narrow as anybody asks for
CLEAR = 0.12  # of the gain: "1.24x, 1.21 to 1.27" is clear
WORTH = 0.02  # a gain below two percent is not worth a change; once the interval lies below it, nothing is to be found
SMALLEST = 0.01  # a difference smaller than this is called none, however sure

MOST_ALIKE = 0.8  # of neighbouring pairs: few pairs cannot show more

BOUNDARIES = 1.25  # what switching, waiting for the device and the one-off steps add to the steps of the blocks

FASTER, SLOWER, NOTHING, UNSURE = "faster", "slower", "no difference", "inconclusive"


class Estimate:
    """What the pairs say: the ratio of the step before to the step after, and its interval."""

    def __init__(self, middle: float, half: float, pairs: int) -> None:
        self.ratio = math.exp(middle)  # an infinite half says that nothing is known yet
        self.low = math.exp(middle - half) if half < 50 else 0.0
        self.high = math.exp(middle + half) if half < 50 else math.inf
        self.pairs = pairs
        self._middle, self._half = middle, half

    def clear(self) -> bool:
        """No further pair would change the answer."""
        if self._half <= FINE or self.high < 1.0 + WORTH:
            return True
        return abs(self._middle) > self._half and self._half <= CLEAR * abs(self._middle)

    def verdict(self) -> str:
        """Faster, slower, no difference, or inconclusive."""
        if self.low > 1.0 and self.ratio >= 1.0 + SMALLEST:
            return FASTER
        if self.high < 1.0 and self.ratio <= 1.0 - SMALLEST:
            return SLOWER
        if self.high < 1.0 + WORTH:
            return NOTHING  # no gain that is worth a change: an answer like any other
        return UNSURE

    def conclusive(self) -> bool:
        """It has a verdict, whichever."""
        return self.verdict() != UNSURE

    def excludes_none(self) -> bool:
        """The interval does not contain "no difference"."""
        return self.low > 1.0 or self.high < 1.0


class Looks:
    """Pairs as they come, and when to look at them."""

    def __init__(self) -> None:
        self.differences: List[float] = []
        self._before: List[float] = []
        self._after: List[float] = []
        self._signs: List[float] = []
        self._next = 0

    def add(self, before_s: float, after_s: float, changed_first: bool = False) -> None:
        """One more pair: seconds a step as is and changed."""
        self._signs.append(-1.0 if changed_first else 1.0)
        self._before.append(math.log(before_s))
        self._after.append(math.log(after_s))
        self.differences.append(math.log(before_s) - math.log(after_s))

    def due(self) -> bool:
        """It is time to look."""
        return self._next < len(LOOKS) and len(self.differences) >= LOOKS[self._next][0]

    def full(self) -> bool:
        """No look is left."""
        return self._next >= len(LOOKS)

    def look(self) -> Estimate:
        """Spends the error of the next look."""
        error = LOOKS[min(self._next, len(LOOKS) - 1)][1]
        self._next += 1
        count = len(self.differences)
        middle, spread, freedom = self._without_drift()
        if not self.decides():
            return Estimate(middle, math.inf, count)
        return Estimate(middle, student(1.0 - error / 2.0, freedom) * spread, count)

    def _without_drift(self) -> Tuple[float, float, int]:
        """The mean difference, its standard error and its degrees of freedom, least squares with the order beside it."""
        count = len(self.differences)
        centre, lean = statistics.fmean(self.differences), statistics.fmean(self._signs)
        varies = 1.0 - lean * lean  # of the signs, which are one either way
        if count < FEWEST_BY_SPREAD or varies < 0.5:  # too few of one order to know the drift by
            return centre, _spread(self.differences) / math.sqrt(count), count - 1
        drift = (statistics.fmean(s * d for s, d in zip(self._signs, self.differences)) - lean * centre) / varies
        middle = centre - drift * lean
        rest = [d - middle - drift * s for s, d in zip(self._signs, self.differences)]
        squares = sum(r * r for r in rest) / (count - 2)
        return middle, math.sqrt(squares / (count * varies)) * _lasting(rest), count - 2

    def decides(self) -> bool:
        """There are pairs enough for an interval."""
        return len(self.differences) >= FEWEST_BY_SPREAD or self._separated()

    def _separated(self) -> bool:
        """The two sides do not meet, and lie further apart than either is wide."""
        gap = max(min(self._before) - max(self._after), min(self._after) - max(self._before))
        return gap > max(max(side) - min(side) for side in (self._before, self._after))

    def detectable(self) -> float:
        """The smallest gain, as a ratio, that all the pairs of a full trial would show with this noise."""
        return detectable_ratio(_spread(self.differences))


def _lasting(rest: Sequence[float]) -> float:
    """How much wider an interval is where neighbours are alike: what lasts for many pairs is seen once, not many times."""
    squares = sum(r * r for r in rest)
    if squares <= 0:
        return 1.0
    alike = sum(a * b for a, b in zip(rest, rest[1:])) / squares
    alike = min(max(alike, 0.0), MOST_ALIKE)
    return math.sqrt((1.0 + alike) / (1.0 - alike))


def detectable_ratio(pair_noise: float) -> float:
    """With this standard deviation of a pair's difference."""
    half = student(1.0 - LOOKS[-1][1] / 2.0, MOST_PAIRS - 1) * pair_noise / math.sqrt(MOST_PAIRS)
    return math.exp(min(half, 50.0))


def block_steps(
    durations_s: Sequence[float], least_s: float, most_s: float, effect: float = WORTH
) -> Tuple[int, float]:
    """How many steps a block needs, and the noise of a pair to expect: from how much the job's own steps vary.

    So many that ten pairs would show a gain of `effect`, but no block shorter than `least_s` or longer than `most_s`.
    """
    step_s = max(statistics.fmean(durations_s), 1e-9)
    noise = _noise(durations_s)
    pairs, error = LOOKS[2]
    wanted = 2.0 * (student(1.0 - error / 2.0, pairs - 1) * noise / math.log(1.0 + effect)) ** 2 / pairs
    fewest, most = math.ceil(least_s / step_s), max(1, math.floor(most_s / step_s))
    steps = int(max(2, min(max(math.ceil(wanted), fewest, 3), most)))
    return steps, noise * math.sqrt(2.0 / steps)


def fitting(steps: int, settle: int, step_s: float, allowance_s: float, least_s: float) -> int:
    """So many of these steps a block that the second look comes in time: before it most differences cannot be told from none."""
    step_s = max(step_s, 1e-9)
    fits = int(allowance_s / (2 * LOOKS[1][0] * BOUNDARIES) / step_s) - settle
    return min(steps, max(fits, 2, math.ceil(least_s / step_s)))


def _noise(durations_s: Sequence[float]) -> float:
    """Relative spread from step to step. Differences of neighbours: a slow drift is no noise here, pairs take it away."""
    pairs = list(zip(durations_s, durations_s[1:]))
    if len(pairs) < 2:
        return 0.1
    squares = [((b - a) / max(0.5 * (a + b), 1e-9)) ** 2 / 2.0 for a, b in pairs]
    return math.sqrt(statistics.fmean(squares))


def _spread(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else math.inf


def student(share: float, freedom: int) -> float:
    """Student's quantile by bisection of its distribution (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = 0.5 * (low + high)
        if 0.5 + 0.5 * _within(middle, freedom) < share:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _within(t: float, freedom: int) -> float:
    """The probability of a value between -t and t."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    if freedom == 1:
        return 2.0 * angle / math.pi
    odd = freedom % 2 == 1
    term = total = cosine if odd else 1.0
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return 2.0 / math.pi * (angle + sine * total) if odd else sine * total
