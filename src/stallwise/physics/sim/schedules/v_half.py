"""V-Half: half of 1F1B's activation memory, and about half of its bubble.

The waves down move at once, those up at half speed (Qi et al. 2024, Pipeline Parallelism with Controllable Memory,
arXiv 2405.15362).
"""

from __future__ import annotations

from stallwise.physics.sim.pipeline import PassTimes
from stallwise.physics.sim.program import Program
from stallwise.physics.sim.schedules._v_shaped import v_program

NAME = "v-half"
TITLE = "V-Half"
CHUNKS = 2
ADAPTS = True


def program(devices: int, microbatches: int, chunks: int, times: PassTimes) -> Program:
    """Activations of p/2 + 1 whole microbatches."""
    return v_program(NAME, devices, microbatches, (1, 2, 1, 2), times, limit=devices + 2)
