"""Finds an order under a memory limit by list scheduling: at each simulated moment the most urgent pass runs.

Urgency: input gradients (others wait for them), then forwards of the deepest chunk while memory allows, then weight
gradients, which only fill. A device may also idle a little for a pass that is about to arrive: how long is `patience`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from stallwise.physics.sim.pipeline import PassTimes
from stallwise.physics.sim.program import Op, Pass


@dataclass(slots=True)
class _Device:
    limit: float  # activations of virtual stages it may hold
    forwards: dict[int, deque[tuple[float, int]]] = field(default_factory=dict)  # stage -> (arrival, microbatch)
    grads: list[tuple[float, int, int]] = field(default_factory=list)  # (arrival, microbatch, stage)
    weights: deque[tuple[int, int]] = field(default_factory=deque)
    held: float = 0.0
    free_s: float = 0.0
    order: list[Op] = field(default_factory=list)


def greedy_orders(
    devices: int,
    microbatches: int,
    device_of: Sequence[int],
    times: PassTimes,
    *,
    limit: Sequence[float],
    patience: float,
    eager_weights: bool = False,
) -> list[list[Op]]:
    """One order per device. `limit` counts activations of virtual stages, `patience` is a share of the filling pass."""
    search = _Search(devices, microbatches, device_of, times, limit, patience, eager_weights)
    return search.orders()


class _Search:
    def __init__(
        self,
        devices: int,
        microbatches: int,
        device_of: Sequence[int],
        times: PassTimes,
        limit: Sequence[float],
        patience: float,
        eager_weights: bool,
    ) -> None:
        self.times, self.device_of, self.patience = times, tuple(device_of), patience
        self.last = len(self.device_of) - 1
        self.eager_weights = eager_weights
        self.devices = [_Device(limit=limit[d]) for d in range(devices)]
        for stage, owner in enumerate(self.device_of):
            self.devices[owner].forwards[stage] = deque()
        first = self.devices[self.device_of[0]].forwards[0]
        first.extend((0.0, k) for k in range(microbatches))
        self.wakes: list[tuple[float, int]] = [(0.0, d) for d in range(devices)]
        self.left = 3 * microbatches * len(self.device_of)

    def orders(self) -> list[list[Op]]:
        """Runs the clock until every pass is placed."""
        while self.left and self.wakes:
            now, d = heappop(self.wakes)
            device = self.devices[d]
            if device.free_s > now + 1e-15:
                continue
            op, wait_until = self._choose(device, now)
            if op is not None:
                self._run(d, op, now)
            elif wait_until is not None:
                heappush(self.wakes, (wait_until, d))
        return [device.order for device in self.devices]

    def _choose(self, device: _Device, now: float) -> tuple[Op | None, float | None]:
        """What to run now, or until when to wait (None: until something arrives)."""
        soonest = device.grads[0] if device.grads else None
        if soonest is not None and soonest[0] <= now + 1e-15:
            return Op(Pass.INPUT_GRAD, soonest[1], soonest[2]), None
        forward, forward_at = self._forward(device)
        must_free = forward is None and bool(device.weights) and any(device.forwards.values())
        fill = self._fill(device)
        if self.eager_weights and must_free and fill is not None:
            return fill, None
        ready = forward is not None and forward_at <= now + 1e-15
        candidate = forward if ready else fill
        if candidate is None:
            later = [t for t in (soonest[0] if soonest else None, forward_at if forward else None) if t is not None]
            return None, min(later, default=None)
        slack = self.patience * self.times.of(candidate)
        if soonest is not None and soonest[0] - now <= slack:
            return None, soonest[0]
        if not ready and forward is not None and forward_at - now <= slack:
            return None, forward_at
        return candidate, None

    def _forward(self, device: _Device) -> tuple[Op | None, float]:
        """The deepest forward that memory allows; the first chunks leave room for the later ones of the same device."""
        stages = sorted(device.forwards, reverse=True)
        for depth, stage in enumerate(stages):
            queue = device.forwards[stage]
            room = device.held + 1 + depth * (1 if len(stages) > 1 else 0)
            if queue and room <= device.limit + 1e-9:
                return Op(Pass.FORWARD, queue[0][1], stage), queue[0][0]
        return None, 0.0

    def _fill(self, device: _Device) -> Op | None:
        if not device.weights:
            return None
        microbatch, stage = device.weights[0]
        return Op(Pass.WEIGHT_GRAD, microbatch, stage)

    def _run(self, d: int, op: Op, now: float) -> None:
        device = self.devices[d]
        end = now + self.times.of(op)
        device.order.append(op)
        device.free_s = end
        self.left -= 1
        share = self.times.weight_held_share
        if op.kind is Pass.FORWARD:
            device.forwards[op.stage].popleft()
            device.held += 1
            if op.stage == self.last:
                heappush(device.grads, (end, op.microbatch, op.stage))
            else:
                self._arrive(op.stage + 1, op, d, end)
        elif op.kind is Pass.INPUT_GRAD:
            heappop(device.grads)
            device.held -= 1 - share
            device.weights.append((op.microbatch, op.stage))
            if op.stage:
                self._arrive(op.stage - 1, op, d, end)
        else:
            device.weights.popleft()
            device.held -= share
        heappush(self.wakes, (end, d))

    def _arrive(self, stage: int, op: Op, sender: int, end: float) -> None:
        owner = self.device_of[stage]
        at = end + (self.times.p2p_s if owner != sender else 0.0)
        receiver = self.devices[owner]
        if op.kind is Pass.FORWARD:
            receiver.forwards[stage].append((at, op.microbatch))
        else:
            heappush(receiver.grads, (at, op.microbatch, stage))
        # Wake it now too: an arrival in sight may be worth waiting for.
        heappush(self.wakes, (max(end, receiver.free_s), owner))
        heappush(self.wakes, (max(at, receiver.free_s), owner))
