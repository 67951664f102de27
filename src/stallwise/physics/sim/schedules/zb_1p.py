"""ZB-1p: the order found automatically for the given pass times in the memory of 1F1B.

Usually close to ZB-H1, better where passes are unequal (Qi et al. 2024, arXiv 2401.10241, section 3).
"""

from __future__ import annotations

from stallwise.physics.sim.pipeline import PassTimes
from stallwise.physics.sim.program import Program
from stallwise.physics.sim.schedules._automatic import automatic

NAME = "zb-1p"
TITLE = "ZB-1p"
ALSO = ("zb1p",)
CHUNKS = 1
ADAPTS = True


def program(devices: int, microbatches: int, chunks: int, times: PassTimes) -> Program:
    """At most p microbatches held."""
    return automatic(NAME, devices, microbatches, times, float(devices))
