"""V-shaped schedules from one repeated block (Qi et al. 2024, Pipeline Parallelism with Controllable Memory).

Each device owns an early and a late chunk. In units of one pass a microbatch takes six slots of a device, so the block
repeats every six; how fast each of its four waves moves from device to device (1 = at once) sets how long activations
live and thereby the memory: sum of the four x p / 12 microbatches.
"""

from __future__ import annotations

from functools import cache
from itertools import product

from stallwise.physics.sim.program import Op, Pass

PERIOD = 6  # F, B and W of two chunks


@cache
def offsets(devices: int, waves: tuple[int, int, int, int]) -> tuple[tuple[int, int, int, int], ...]:
    """For each device the slots of the first microbatch's F0, F1, B1, B0, free of collisions with its repeats."""
    down, up, back_down, back_up = waves
    last = devices - 1
    best: tuple[int, tuple[tuple[int, int, int, int], ...]] | None = None
    for turn, loss, back in product(range(1, PERIOD + 1), repeat=3):
        f1_last = down * last + turn
        b1_first = f1_last + up * last + loss
        b0_last = b1_first + back_down * last + back
        table = tuple(
            (down * d, f1_last + up * (last - d), b1_first + back_down * d, b0_last + back_up * (last - d))
            for d in range(devices)
        )
        if all(len({slot % PERIOD for slot in row}) == 4 for row in table) and (best is None or b0_last < best[0]):
            best = (b0_last, table)
    assert best is not None, "six slots always leave room for four waves"
    return best[1]


def block_orders(devices: int, microbatches: int, waves: tuple[int, int, int, int]) -> list[list[Op]]:
    """Forwards and input gradients of every device, in the order of the repeated block."""
    orders: list[list[Op]] = []
    for d, (f0, f1, b1, b0) in enumerate(offsets(devices, waves)):
        far = 2 * devices - 1 - d
        timed = []
        for k in range(microbatches):
            shift = k * PERIOD
            timed += [
                (f0 + shift, Op(Pass.FORWARD, k, d)),
                (f1 + shift, Op(Pass.FORWARD, k, far)),
                (b1 + shift, Op(Pass.INPUT_GRAD, k, far)),
                (b0 + shift, Op(Pass.INPUT_GRAD, k, d)),
            ]
        orders.append([op for _, op in sorted(timed, key=lambda item: item[0])])
    return orders
