"""Places the weight gradients: given the order of forwards and input gradients, they fill the waits or free memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from stallwise.physics.sim.pipeline import PassTimes
from stallwise.physics.sim.program import Op, Pass


def fill_weights(
    orders: Sequence[Sequence[Op]],
    device_of: Sequence[int],
    times: PassTimes,
    *,
    limit: float,
    patience: float,
    advance: bool = False,
) -> list[list[Op]]:
    """A weight gradient runs where the next pass is late by most of its length, or where memory is full.

    `limit` counts the activations of virtual stages a device may hold; `patience` is how far a weight gradient may
    delay the pass after it, as a share of its own length. With `advance`, a later forward whose input is there may
    also fill a wait, as far as memory leaves room for those it overtakes.
    """
    filling = _Filling(orders, device_of, times, limit, patience, advance)
    return filling.result()


class _Filling:
    def __init__(
        self,
        orders: Sequence[Sequence[Op]],
        device_of: Sequence[int],
        times: PassTimes,
        limit: float,
        patience: float,
        advance: bool,
    ) -> None:
        self.left = [list(reversed(order)) for order in orders]  # next pass last: popping is cheap
        self.device_of, self.times = device_of, times
        self.limit, self.patience, self.advance = limit, patience, advance
        self.last = len(device_of) - 1
        self.ends: dict[tuple[Pass, int, int], float] = {}
        self.clocks = [0.0] * len(orders)
        self.held = [0.0] * len(orders)
        self.pending: list[deque[Op]] = [deque() for _ in orders]
        self.out: list[list[Op]] = [[] for _ in orders]

    def result(self) -> list[list[Op]]:
        """Places everything, device by device, as inputs become known."""
        moved = True
        while moved:
            moved = False
            for device, left in enumerate(self.left):
                while left:
                    ready = self._ready(left[-1], device)
                    if ready is None:
                        break
                    self._fill(device, left[-1], ready)
                    self._place(device, left.pop(), ready)
                    moved = True
        for device, queue in enumerate(self.pending):
            self.out[device].extend(queue)
        return self.out

    def _fill(self, device: int, before: Op, ready: float) -> None:
        """Uses the wait before a pass."""
        queue = self.pending[device]
        while True:
            gap = ready - self.clocks[device]
            full = before.kind is Pass.FORWARD and self.held[device] + 1 > self.limit + 1e-9
            if self.advance and not full and self._advance(device, gap):
                continue
            if not queue or (not full and gap < (1 - self.patience) * self.times.of(queue[0]) - 1e-12):
                return
            op = queue.popleft()
            self.out[device].append(op)
            self.clocks[device] += self.times.of(op)
            self.held[device] -= self.times.weight_held_share

    def _advance(self, device: int, gap: float) -> bool:
        """Pulls the next forward that could run within the gap, if there is one."""
        left = self.left[device]
        overtaken = 0
        for place in range(len(left) - 1, -1, -1):
            op = left[place]
            if op.kind is not Pass.FORWARD:
                continue
            if self.held[device] + 1 + min(overtaken, 1) > self.limit + 1e-9:  # room for one is room for all in turn
                return False
            ready = self._ready(op, device)
            fits = gap >= (1 - self.patience) * self.times.of(op) - 1e-12
            if place < len(left) - 1 and fits and ready is not None and ready <= self.clocks[device] + 1e-12:
                self._place(device, left.pop(place), ready)
                return True
            overtaken += 1
        return False

    def _place(self, device: int, op: Op, ready: float) -> None:
        self.clocks[device] = max(self.clocks[device], ready) + self.times.of(op)
        self.ends[op.kind, op.microbatch, op.stage] = self.clocks[device]
        self.out[device].append(op)
        if op.kind is Pass.FORWARD:
            self.held[device] += 1
        else:
            self.held[device] -= 1 - self.times.weight_held_share
            self.pending[device].append(Op(Pass.WEIGHT_GRAD, op.microbatch, op.stage))

    def _ready(self, op: Op, device: int) -> float | None:
        if op.kind is Pass.FORWARD:
            if op.stage == 0:
                return 0.0
            key, source = (Pass.FORWARD, op.microbatch, op.stage - 1), op.stage - 1
        elif op.stage == self.last:
            key, source = (Pass.FORWARD, op.microbatch, op.stage), op.stage
        else:
            key, source = (Pass.INPUT_GRAD, op.microbatch, op.stage + 1), op.stage + 1
        end = self.ends.get(key)
        if end is None:
            return None
        return end + (self.times.p2p_s if self.device_of[source] != device else 0.0)
