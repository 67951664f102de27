"""When a loop has settled: a window over steps that still warm up would show what the job does once, not what it does all day.

Durations of untraced steps are all it hears. A window that opened too early shows itself later, when steps have become
much shorter than those before it: then it is taken once more.
"""

from __future__ import annotations

import statistics
from collections import deque
from typing import Callable, Deque, Optional

FIRST = 16  # steps: ten or so for compilation, autotuning and the allocator, the rest to measure the untraced step
SETTLED_OVER, WITHIN = 6, 0.2  # the median of so many steps is so near to that of as many before: noise is no trend
PATIENCE_STEPS, PATIENCE_S = 40, 15.0  # a loop that never becomes calm is looked at all the same
SLOW_FROM_S, FEWEST_BEFORE = 10.0, 5  # a loop of long steps is not asked for sixteen of them
VERY_SLOW_FROM_S, FEWEST_OF_ALL = 40.0, 2
LATER, SHORTER, AGAIN_AFTER_S = 24, 0.6, 5.0  # steps; of their length before the window; since the first step
LOOKED_ENOUGH = 2000  # steps: whatever is to settle has settled


class Settling:
    """Hears the duration of every untraced step."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._first_s: Optional[float] = None
        self._last: Deque[float] = deque(maxlen=LATER)
        self._before_s: Optional[float] = None
        self._count = 0

    def add(self, duration_s: float) -> None:
        """One more untraced step has ended."""
        if self._first_s is None:
            self._first_s = self._now()
        self._last.append(duration_s)
        self._count += 1

    def ready(self, number: int) -> bool:
        """A window may open after `number` steps."""
        since_s = self._now() - self._first_s if self._first_s is not None else 0.0
        if since_s > VERY_SLOW_FROM_S and number >= FEWEST_OF_ALL:
            return True
        if since_s > SLOW_FROM_S and number >= FEWEST_BEFORE:
            return since_s > PATIENCE_S or self._settled(2)
        if number < FIRST:
            return False
        return number >= PATIENCE_STEPS or self._settled(SETTLED_OVER)

    def _settled(self, count: int) -> bool:
        recent = list(self._last)[-2 * count :]
        if len(recent) < 2 * count:
            return False
        before, now = statistics.median(recent[:count]), statistics.median(recent[count:])
        return abs(now - before) <= WITHIN * before

    def window_opens(self) -> None:
        """Remembers what a step took before the first window."""
        if self._before_s is None and self._last:
            self._before_s = statistics.median(list(self._last)[-SETTLED_OVER:])
        self._last.clear()

    def was_too_early(self) -> bool:
        """Steps have become so much shorter since the window that it showed the warm-up."""
        if len(self._last) < LATER or self._count % LATER or self._before_s is None or self._first_s is None:
            return False
        if self._count > LOOKED_ENOUGH:
            self._before_s = None
            return False
        return self._now() - self._first_s > AGAIN_AFTER_S and statistics.median(self._last) < SHORTER * self._before_s
