"""ZB-H1: 1F1B with the weight gradients split off and delayed, in 1F1B's memory.

The input gradients travel back sooner, and the weight gradients fill the end: idle (p-1)(F+B-W), a third of 1F1B's
when the three passes take equally long (Qi et al. 2024, arXiv 2401.10241).
"""

from __future__ import annotations

from stallwise.physics.sim.pipeline import PassTimes
from stallwise.physics.sim.program import Program, linear, one_each
from stallwise.physics.sim.schedules._split import split_order

NAME = "zb-h1"
TITLE = "ZB-H1"
ALSO = ("zb1p", "zb-1p-handmade")
CHUNKS = 1


def program(devices: int, microbatches: int, chunks: int, times: PassTimes) -> Program:
    """Device d warms up with p-d forwards and keeps d weight gradients back, so that all hold p."""
    orders = [split_order(d, microbatches, warm=devices - d - 1, delay=d) for d in range(devices)]
    return linear(NAME, orders, one_each(devices), microbatches)
