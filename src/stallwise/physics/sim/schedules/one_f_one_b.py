"""1F1B: after a warm-up each device alternates a forward and a backward, so at most p microbatches are held.

The bubble is GPipe's; only the memory is better (PipeDream-Flush, Megatron's default).
"""

from __future__ import annotations

from stallwise.physics.sim.pipeline import PassTimes
from stallwise.physics.sim.program import Op, Pass, Program, linear, one_each

NAME = "1f1b"
TITLE = "1F1B"
ALSO = ("pipedream-flush", "megatron")
CHUNKS = 1


def program(devices: int, microbatches: int, chunks: int, times: PassTimes) -> Program:
    """Warm-up of p-d-1 forwards, pairs, then what is left of the backwards."""
    orders: list[list[Op]] = []
    for d in range(devices):
        warm = min(devices - d - 1, microbatches)
        order = [Op(Pass.FORWARD, k, d) for k in range(warm)]
        for k in range(microbatches):
            if k + warm < microbatches:
                order.append(Op(Pass.FORWARD, k + warm, d))
            order.append(Op(Pass.BACKWARD, k, d))
        orders.append(order)
    return linear(NAME, orders, one_each(devices), microbatches)
