"""Finds the order for given pass times and a memory limit: the best of many list schedules and the handmade ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from stallwise.sim.pipeline import PassTimes, run_program
from stallwise.sim.program import Op, Program, linear, one_each
from stallwise.sim.schedules._greedy import greedy_orders
from stallwise.sim.schedules._split import split_order

PATIENCES = (0.05, 0.1, 0.2, 0.3, 0.45)


@lru_cache(maxsize=64)  # a search over hundreds of microbatches takes a second, and callers ask again
def automatic(name: str, devices: int, microbatches: int, times: PassTimes, limit: float) -> Program:
    """The order with the shortest device span that keeps to `limit` microbatches of activations per device."""
    place = one_each(devices)
    candidates: list[Sequence[Sequence[Op]]] = [
        [split_order(d, microbatches, warm=devices - d - 1, delay=d) for d in range(devices)],
        [split_order(d, microbatches, warm=2 * (devices - d - 1), delay=2 * d) for d in range(devices)],
    ]
    for patience in PATIENCES:
        for eager in (False, True):
            candidates.append(
                greedy_orders(
                    devices,
                    microbatches,
                    place,
                    times,
                    limit=[limit] * devices,
                    patience=patience,
                    eager_weights=eager,
                )
            )
    best: tuple[float, Program] | None = None
    for orders in candidates:
        program = linear(name, orders, place, microbatches)
        run = run_program(program, times)
        if max(run.held_peak) <= limit + 1e-6 and (best is None or run.own_span_share < best[0]):
            best = (run.own_span_share, program)
    assert best is not None, "ZB-H1 needs no more than p"
    return best[1]
