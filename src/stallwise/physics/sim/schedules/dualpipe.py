"""DualPipe: microbatches enter from both ends, and a forward of one direction overlaps a backward of the other.

Every device holds two stages of the model (twice the parameters) and p+1 activations; the bubble is
(p/2 - 1)(F&B + B - 3W), with F&B the time of an overlapped pair and B the full backward (DeepSeek-V3, arXiv
2412.19437). Its real gain is that all-to-all and send-recv hide behind the pair.
"""

from __future__ import annotations

from collections import deque

from stallwise.errors import BadRequest
from stallwise.physics.sim.pipeline import PassTimes
from stallwise.physics.sim.program import Op, Pass, Program, Slot

NAME = "dualpipe"
TITLE = "DualPipe"
CHUNKS = 2


def program(devices: int, microbatches: int, chunks: int, times: PassTimes) -> Program:
    """Stages 0..p-1 serve the first half of the microbatches, p..2p-1 (mirrored) the second."""
    if devices % 2 or microbatches % 2 or microbatches < 2 * devices:
        even = devices + devices % 2
        raise BadRequest(
            f"DualPipe needs an even number of stages and an even number of microbatches from twice that, "
            f"not {devices} and {microbatches}",
            hint=f"{even} stages and {max(2 * even, microbatches + microbatches % 2)} microbatches",
        )
    half = microbatches // 2
    down = tuple(range(devices))
    up = tuple(range(devices, 2 * devices))
    return Program(
        schedule=NAME,
        devices=tuple(tuple(_Device(d, devices, half).slots()) for d in range(devices)),
        device_of=(*range(devices), *reversed(range(devices))),
        routes=(down, up),
        route_of=(0,) * half + (1,) * half,
    )


class _Device:
    """The eight phases of one device: near is the direction that enters at its end, far the other."""

    def __init__(self, device: int, devices: int, half: int) -> None:
        self.ring = min(device, devices - 1 - device)  # distance from the nearer end
        self.rest = devices // 2 - self.ring - 1  # distance from the middle
        first = device < devices // 2
        down, up = (device, 0), (2 * devices - 1 - device, half)  # (stage, first microbatch of the direction)
        self.near, self.far = (down, up) if first else (up, down)
        self.main = half - devices + self.ring + 1
        self.forwards = {self.near: 0, self.far: 0}
        self.backwards = {self.near: 0, self.far: 0}
        self.weights: deque[Op] = deque()
        self.out: list[Slot] = []

    def slots(self) -> list[Slot]:
        """All of them, in order."""
        for _ in range(2 * self.rest):
            self._put(self._forward(self.near))
        for _ in range(self.ring + 1):
            self._put(self._forward(self.near))
            self._put(self._forward(self.far))
        for _ in range(self.rest):
            self._split(self.far)
            self._weight()
            self._put(self._forward(self.far))
        for turn in range(self.main):
            if turn == 0 and self.rest == 0:  # in the middle the first gradient has only just left: nothing to overlap
                self._put(self._forward(self.near))
                self._put(self._backward(self.far))
            else:
                self._put(self._forward(self.near), self._backward(self.far))
            self._put(self._forward(self.far), self._backward(self.near))
        for _ in range(self.rest):
            self._put(self._backward(self.far))
            self._put(self._forward(self.far), self._backward(self.near))
        self._cool_down()
        return self.out

    def _cool_down(self) -> None:
        turns = self.ring + 1
        split = False
        for turn in range(turns):
            split = split or (turn == turns // 2 and self.ring % 2 == 1)
            self._gradient(self.far, split)
            split = split or (turn == turns // 2 and self.ring % 2 == 0)
            self._gradient(self.near, split)
        for _ in range(self.rest):
            self._weight()
            self._split(self.near)
        while self.weights:
            self._weight()

    def _put(self, *ops: Op) -> None:
        self.out.append(ops)

    def _gradient(self, side: tuple[int, int], split: bool) -> None:
        if split:
            self._split(side)
        else:
            self._put(self._backward(side))

    def _forward(self, side: tuple[int, int]) -> Op:
        op = Op(Pass.FORWARD, side[1] + self.forwards[side], side[0])
        self.forwards[side] += 1
        return op

    def _backward(self, side: tuple[int, int]) -> Op:
        op = Op(Pass.BACKWARD, side[1] + self.backwards[side], side[0])
        self.backwards[side] += 1
        return op

    def _split(self, side: tuple[int, int]) -> None:
        op = self._backward(side)
        self._put(Op(Pass.INPUT_GRAD, op.microbatch, op.stage))
        self.weights.append(Op(Pass.WEIGHT_GRAD, op.microbatch, op.stage))

    def _weight(self) -> None:
        if self.weights:
            self._put(self.weights.popleft())
