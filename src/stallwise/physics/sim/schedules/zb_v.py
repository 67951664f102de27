"""ZB-V: two chunks per device in a V, no bubble when F = B = W, in the memory of 1F1B.

The first and the last stage share device 0, so gradients start where forwards end; twice the messages of ZB-H2
(Qi et al. 2024, arXiv 2401.10241).
"""

from __future__ import annotations

from stallwise.physics.sim.pipeline import PassTimes, run_program
from stallwise.physics.sim.program import Op, Pass, Program, linear, v_shape
from stallwise.physics.sim.schedules._v_shaped import v_program

NAME = "zb-v"
TITLE = "ZB-V"
ALSO = ("zbv", "v-zb")
CHUNKS = 2
ADAPTS = True


def program(devices: int, microbatches: int, chunks: int, times: PassTimes) -> Program:
    """The handmade order for equal passes, or one filled by the actual times where that is quicker."""
    filled = v_program(NAME, devices, microbatches, (3, 3, 3, 3), times, limit=2 * devices)
    if microbatches < 2 * devices:  # too few to reach the steady state that the handmade order assumes
        return filled
    place = v_shape(devices)
    orders = [_Order(d, devices, microbatches).ops() for d in range(devices)]
    handmade = linear(NAME, orders, place, microbatches)
    return min(handmade, filled, key=lambda program: run_program(program, times).own_span_share)


class _Order:
    """One device's passes; `near` is its chunk on the way down, `far` the one on the way back up."""

    def __init__(self, device: int, devices: int, microbatches: int) -> None:
        self.device, self.devices, self.microbatches = device, devices, microbatches
        self.near, self.far = device, 2 * devices - 1 - device
        self.counts = {(kind, stage): 0 for kind in Pass for stage in (self.near, self.far)}
        self.out: list[Op] = []

    def ops(self) -> list[Op]:
        """Fill the V, then one of each per microbatch, then drain with weight gradients last."""
        for _ in range(2 * (self.devices - self.device) - 1):
            self._add(Pass.FORWARD, self.near)
        for _ in range(self.device):
            self._add(Pass.FORWARD, self.far)
            self._add(Pass.FORWARD, self.near)
        for _ in range(self.devices - self.device):
            self._add_all(self.far)
        while self._done(Pass.FORWARD, self.far) < self.microbatches:
            if self._done(Pass.FORWARD, self.near) < self.microbatches:
                self._add(Pass.FORWARD, self.near)
            self._add(Pass.INPUT_GRAD, self.near)
            self._add(Pass.WEIGHT_GRAD, self.near)
            self._add_all(self.far)
        self._drain()
        return self.out

    def _drain(self) -> None:
        for _ in range(self.device):
            self._add(Pass.INPUT_GRAD, self.near)
            self._add(Pass.INPUT_GRAD, self.far)
        while self._done(Pass.INPUT_GRAD, self.near) < self.microbatches:
            self._add(Pass.INPUT_GRAD, self.near)
            self._add(Pass.WEIGHT_GRAD, self.near)
        for stage in (self.far, self.near):
            while self._done(Pass.WEIGHT_GRAD, stage) < self.microbatches:
                self._add(Pass.WEIGHT_GRAD, stage)

    def _add_all(self, stage: int) -> None:
        for kind in (Pass.FORWARD, Pass.INPUT_GRAD, Pass.WEIGHT_GRAD):
            self._add(kind, stage)

    def _add(self, kind: Pass, stage: int) -> None:
        self.out.append(Op(kind, self.counts[kind, stage], stage))
        self.counts[kind, stage] += 1

    def _done(self, kind: Pass, stage: int) -> int:
        return self.counts[kind, stage]
