"""V-Min: a third of 1F1B's activation memory, two thirds of its bubble while F = B = W.

Every wave moves at once, nothing lives longer than it must. That also leaves no slack: with unequal passes each
microbatch waits a little (Qi et al. 2024, arXiv 2405.15362).
"""

from __future__ import annotations

from math import ceil

from stallwise.physics.sim.pipeline import PassTimes
from stallwise.physics.sim.program import Program
from stallwise.physics.sim.schedules._v_shaped import v_program

NAME = "v-min"
TITLE = "V-Min"
CHUNKS = 2
ADAPTS = True


def program(devices: int, microbatches: int, chunks: int, times: PassTimes) -> Program:
    """Activations of p/3 + 1 whole microbatches, one more where the block does not divide."""
    return v_program(NAME, devices, microbatches, (1, 1, 1, 1), times, limit=ceil(2 * devices / 3) + 2)
