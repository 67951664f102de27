"""What the three V-shaped schedules share: a block's order, weight gradients placed by the actual pass times."""

from __future__ import annotations

from itertools import product

from stallwise.physics.sim.pipeline import PassTimes, run_program
from stallwise.physics.sim.program import Program, linear, v_shape
from stallwise.physics.sim.schedules._building_block import block_orders
from stallwise.physics.sim.schedules._filling import fill_weights

PATIENCES = (0.0, 0.3, 0.6)  # how far a weight gradient may delay what follows; which is best depends on F, B and W


def v_program(
    name: str, devices: int, microbatches: int, waves: tuple[int, int, int, int], times: PassTimes, *, limit: float
) -> Program:
    """The quickest of a few fillings; the limit is raised to what the block itself needs."""
    place = v_shape(devices)
    orders = block_orders(devices, microbatches, waves)
    found = []
    for patience, advance in product(PATIENCES, (False, True)):
        filled = fill_weights(orders, place, times, limit=limit, patience=patience, advance=advance)
        program = linear(name, filled, place, microbatches)
        found.append((run_program(program, times).own_span_share, program))
    return min(found, key=lambda item: item[0])[1]
