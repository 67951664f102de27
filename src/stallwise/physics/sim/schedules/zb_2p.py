"""ZB-2p: the order found automatically for the given pass times in twice the memory of 1F1B.

Nearly no bubble once there are several times more microbatches than stages (Qi et al. 2024, arXiv 2401.10241).
"""

from __future__ import annotations

from stallwise.physics.sim.pipeline import PassTimes
from stallwise.physics.sim.program import Program
from stallwise.physics.sim.schedules._automatic import automatic

NAME = "zb-2p"
TITLE = "ZB-2p"
ALSO = ("zb2p",)
CHUNKS = 1
ADAPTS = True


def program(devices: int, microbatches: int, chunks: int, times: PassTimes) -> Program:
    """At most 2p microbatches held."""
    return automatic(NAME, devices, microbatches, times, float(2 * devices))
