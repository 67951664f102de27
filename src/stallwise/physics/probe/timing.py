"""Times an operation the way a careful person would: warm-up, many repeats, device events, median and spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

WARM_UP = 5
ENOUGH_S = 0.3  # total time per measurement: long enough for clocks to settle, short enough to be asked often
MIN_REPEATS, MAX_REPEATS = 10, 1000


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one call: the median of many, with the quartiles."""

    median_s: float
    low_s: float
    high_s: float
    repeats: int
    clock: str  # "device events" or "host"

    @classmethod
    def of(cls, times: Sequence[float], clock: str) -> Timing:
        """Median and quartiles of repeats."""
        ordered = sorted(times)
        quarter = len(ordered) // 4
        return cls(statistics.median(ordered), ordered[quarter], ordered[-quarter - 1], len(ordered), clock)

    @property
    def spread_share(self) -> float:
        """Half the distance of the quartiles over the median: differences smaller than this are noise."""
        return (self.high_s - self.low_s) / 2 / self.median_s if self.median_s else 0.0

    def __str__(self) -> str:
        from stallwise.units import Unit, show

        return f"{show(self.median_s, Unit.SECOND)} ± {self.spread_share:.0%} ({self.repeats} times, {self.clock})"


def bench(fn: Callable[..., object], *inputs: tuple[Any, ...], enough_s: float = ENOUGH_S) -> Timing:
    """Times `fn()`; with several argument tuples it rotates among them, so that no cache holds the data.

    On a GPU the device's own events are used; nothing is synchronised between calls.
    """
    rotation = inputs or ((),)
    torch = _torch_with_gpu()
    for i in range(WARM_UP):
        fn(*rotation[i % len(rotation)])
    clock = _device_clock(torch) if torch is not None else _host_clock
    single_s = statistics.median(clock(fn, rotation, 3))
    repeats = max(MIN_REPEATS, min(MAX_REPEATS, int(enough_s / max(single_s, 1e-7))))
    return Timing.of(clock(fn, rotation, repeats), "device events" if torch else "host")


def _torch_with_gpu() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def _host_clock(fn: Callable[..., object], rotation: tuple[tuple[Any, ...], ...], repeats: int) -> list[float]:
    times = []
    for i in range(repeats):
        arguments = rotation[i % len(rotation)]
        start = time.perf_counter()
        fn(*arguments)
        times.append(time.perf_counter() - start)
    return times


def _device_clock(torch: Any) -> Callable[..., list[float]]:
    def measure(fn: Callable[..., object], rotation: tuple[tuple[Any, ...], ...], repeats: int) -> list[float]:
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2 * repeats)]
        torch.cuda.synchronize()
        for i in range(repeats):
            events[2 * i].record()
            fn(*rotation[i % len(rotation)])
            events[2 * i + 1].record()
        torch.cuda.synchronize()
        return [events[2 * i].elapsed_time(events[2 * i + 1]) / 1e3 for i in range(repeats)]

    return measure
