"""GPipe: all forwards, then all backwards. Simple, and every microbatch's activations are held at once."""

from __future__ import annotations

from stallwise.physics.sim.pipeline import PassTimes
from stallwise.physics.sim.program import Op, Pass, Program, linear, one_each

NAME = "gpipe"
TITLE = "GPipe"
CHUNKS = 1


def program(devices: int, microbatches: int, chunks: int, times: PassTimes) -> Program:
    """The same order everywhere."""
    orders = [
        [Op(Pass.FORWARD, k, d) for k in range(microbatches)]
        + [Op(Pass.BACKWARD, k, d) for k in reversed(range(microbatches))]
        for d in range(devices)
    ]
    return linear(NAME, orders, one_each(devices), microbatches)
