"""ZB-H2: twice 1F1B's warm-up, so that forwards fill the front and weight gradients the back.

No bubble at all when F = B = W and the optimizer step need not wait for everybody; holds up to 2p-1 microbatches
(Qi et al. 2024, arXiv 2401.10241).
"""

from __future__ import annotations

from stallwise.physics.sim.pipeline import PassTimes
from stallwise.physics.sim.program import Program, linear, one_each
from stallwise.physics.sim.schedules._split import split_order

NAME = "zb-h2"
TITLE = "ZB-H2"
CHUNKS = 1


def program(devices: int, microbatches: int, chunks: int, times: PassTimes) -> Program:
    """Device d warms up with 2(p-d)-1 forwards and keeps 2d weight gradients back."""
    orders = [split_order(d, microbatches, warm=2 * (devices - d - 1), delay=2 * d) for d in range(devices)]
    return linear(NAME, orders, one_each(devices), microbatches)
