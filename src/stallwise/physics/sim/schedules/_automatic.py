"""Finds the order for given pass times and a memory limit: the best of many list schedules and the handmade ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

from stallwise.physics.sim.pipeline import PassTimes, run_program
from stallwise.physics.sim.program import Op, Program, linear, one_each
from stallwise.physics.sim.schedules._greedy import greedy_orders
from stallwise.physics.sim.schedules._split import split_order

PATIENCES = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35)
ROUNDS = 3  # microbatches per device that show which settings suit; the best few are then tried in full
FINALISTS = 3


@lru_cache(maxsize=64)  # a search over hundreds of microbatches takes a second, and callers ask again
def automatic(name: str, devices: int, microbatches: int, times: PassTimes, limit: float) -> Program:
    """The order with the shortest device span that keeps to `limit` microbatches of activations per device."""
    settings: list[_Setting] = ["h1", "h2", *product(PATIENCES, (False, True))]
    trial = min(microbatches, ROUNDS * devices)
    if trial < microbatches:
        settings = [setting for _, setting, _ in _tried(settings, name, devices, trial, times, limit)[:FINALISTS]]
    return _tried(settings, name, devices, microbatches, times, limit)[0][2]


_Setting = str | tuple[float, bool]


def _tried(
    settings: Sequence[_Setting], name: str, devices: int, microbatches: int, times: PassTimes, limit: float
) -> list[tuple[float, _Setting, Program]]:
    """Those that keep to the limit, best first; ZB-H1 always does."""
    place = one_each(devices)
    found = []
    for setting in dict.fromkeys((*settings, "h1")):
        orders = _orders(setting, devices, microbatches, times, limit)
        program = linear(name, orders, place, microbatches)
        run = run_program(program, times)
        if max(run.held_peak) <= limit + 1e-6:
            found.append((run.own_span_share, setting, program))
    return sorted(found, key=lambda item: item[0])


def _orders(
    setting: _Setting, devices: int, microbatches: int, times: PassTimes, limit: float
) -> Sequence[Sequence[Op]]:
    if setting == "h1":
        return [split_order(d, microbatches, warm=devices - d - 1, delay=d) for d in range(devices)]
    if setting == "h2":
        return [split_order(d, microbatches, warm=2 * (devices - d - 1), delay=2 * d) for d in range(devices)]
    assert not isinstance(setting, str)
    patience, eager = setting
    return greedy_orders(
        devices,
        microbatches,
        one_each(devices),
        times,
        limit=[limit] * devices,
        patience=patience,
        eager_weights=eager,
    )
