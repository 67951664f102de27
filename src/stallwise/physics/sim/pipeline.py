"""Runs a pipeline schedule with given pass times: when everything starts and ends, what idles, what is held.

Devices run their slots in order; a slot starts when the device is free and its inputs have arrived. That is exact for a
static schedule, whatever the imbalance between stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from stallwise.errors import BadRequest
from stallwise.physics.sim.program import Op, Pass, Program, Slot

NONE = -1  # no neighbour: the first or last stage of a route
UNKNOWN = -1.0  # not computed yet; real ends are never negative


@dataclass(frozen=True, slots=True)
class PassTimes:
    """Seconds of each pass on each virtual stage, and of a transfer between devices."""

    forward_s: tuple[float, ...]
    input_grad_s: tuple[float, ...]
    weight_grad_s: tuple[float, ...]
    p2p_s: float = 0.0
    together_ratio: float = 1.0  # two passes run together against one after the other
    weight_held_share: float = 0.94  # of a microbatch's activations that wait for the weight gradient (32/34, no SP)

    def of(self, op: Op) -> float:
        """How long one pass runs."""
        if op.kind is Pass.FORWARD:
            return self.forward_s[op.stage]
        if op.kind is Pass.INPUT_GRAD:
            return self.input_grad_s[op.stage]
        if op.kind is Pass.WEIGHT_GRAD:
            return self.weight_grad_s[op.stage]
        return self.input_grad_s[op.stage] + self.weight_grad_s[op.stage]

    def slot(self, slot: Slot) -> float:
        """How long a slot runs."""
        if len(slot) == 1:
            return self.of(slot[0])
        return sum(self.of(op) for op in slot) * self.together_ratio

    def scaled(self, factor: float) -> PassTimes:
        """All passes longer by a factor; transfers unchanged."""
        return replace(
            self,
            forward_s=tuple(factor * t for t in self.forward_s),
            input_grad_s=tuple(factor * t for t in self.input_grad_s),
            weight_grad_s=tuple(factor * t for t in self.weight_grad_s),
        )


def even_times(
    stages: int, forward_s: float, input_grad_s: float, weight_grad_s: float, *, chunks: int = 1, p2p_s: float = 0.0
) -> PassTimes:
    """Every device the same; given per device, split evenly over its chunks."""
    n = stages * chunks
    return PassTimes(
        (forward_s / chunks,) * n, (input_grad_s / chunks,) * n, (weight_grad_s / chunks,) * n, p2p_s=p2p_s
    )


@dataclass(frozen=True, slots=True)
class Placed:
    """A slot with its time."""

    slot: Slot
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """One simulated step."""

    program: Program
    times: PassTimes
    devices: tuple[tuple[Placed, ...], ...]

    @property
    def step_s(self) -> float:
        """From the first start to the last end on any device."""
        return max((d[-1].end_s for d in self.devices if d), default=0.0)

    @property
    def busy_s(self) -> tuple[float, ...]:
        """Seconds each device works."""
        return tuple(sum(p.end_s - p.start_s for p in device) for device in self.devices)

    @property
    def bubble_step_share(self) -> float:
        """Idle device time over all device time of the step: (p-1)/(m+p-1) for balanced 1F1B."""
        whole = self.step_s * len(self.devices)
        return 1 - sum(self.busy_s) / whole if whole else 0.0

    @property
    def bubble_useful_ratio(self) -> float:
        """Idle device time over useful device time: (p-1)/m for balanced 1F1B."""
        useful = sum(self.busy_s)
        return self.step_s * len(self.devices) / useful - 1 if useful else 0.0

    @property
    def own_span_share(self) -> float:
        """As the Zero Bubble papers count: the longest span of any device, its own start to its own end.

        It equals the step's share where all wait for the optimizer, and is smaller where a device may begin the next
        step before the others have finished this one (their post-validated optimizer step).
        """
        spans = [d[-1].end_s - d[0].start_s for d in self.devices if d]
        longest = max(spans, default=0.0)
        busiest = max(self.busy_s, default=0.0)
        return 1 - busiest / longest if longest else 0.0

    @property
    def held_peak(self) -> tuple[float, ...]:
        """Most activations a device holds at once, in microbatches of a whole device (1F1B's first stage: p)."""
        chunks = [0] * len(self.devices)
        for device in self.program.device_of:
            chunks[device] += 1
        routes = len(self.program.routes)  # DualPipe: two model copies, each stage is a whole device's worth
        return tuple(
            _peak(device, self.times.weight_held_share) * routes / max(1, n)
            for device, n in zip(self.devices, chunks, strict=True)
        )


def _peak(placed: Sequence[Placed], weight_held_share: float) -> float:
    held = peak = 0.0
    for item in placed:
        held += sum(1.0 for op in item.slot if op.kind is Pass.FORWARD)
        peak = max(peak, held)
        for op in item.slot:
            if op.kind is Pass.BACKWARD:
                held -= 1
            elif op.kind is Pass.INPUT_GRAD:
                held -= 1 - weight_held_share
            elif op.kind is Pass.WEIGHT_GRAD:
                held -= weight_held_share
    return peak


def run_program(program: Program, times: PassTimes) -> PipelineRun:
    """Places every slot in time; says which devices wait for each other if the order can never run."""
    if min(len(times.forward_s), len(times.input_grad_s), len(times.weight_grad_s)) < program.stages:
        raise BadRequest(f"{program.stages} virtual stages need as many pass times", hint="one entry per virtual stage")
    arrivals = _Arrivals(program, times)
    pointers = [0] * len(program.devices)
    clocks = [0.0] * len(program.devices)
    placed: list[list[Placed]] = [[] for _ in program.devices]
    waiting = list(range(len(program.devices)))
    while waiting:
        again: list[int] = []
        moved = False
        for device in waiting:
            slots = program.devices[device]
            while pointers[device] < len(slots):
                slot = slots[pointers[device]]
                ready = arrivals.ready(slot, device)
                if ready is None:
                    break
                start = max(clocks[device], ready)
                end = start + times.slot(slot)
                placed[device].append(Placed(slot, start, end))
                arrivals.done(slot, end)
                clocks[device] = end
                pointers[device] += 1
                moved = True
            if pointers[device] < len(slots):
                again.append(device)
        if again and not moved:
            stuck = ", ".join(f"device {d} at {program.devices[d][pointers[d]]}" for d in again[:4])
            raise BadRequest(f"the schedule deadlocks: {stuck}", hint="the order breaks a dependency")
        waiting = again
    return PipelineRun(program, times, tuple(tuple(p) for p in placed))


class _Arrivals:
    """When the inputs of a pass are there. The inner loop of every search: lists by number, no objects."""

    def __init__(self, program: Program, times: PassTimes) -> None:
        stages = program.stages
        self.p2p_s = times.p2p_s
        self.device_of = program.device_of
        before, after = [NONE] * stages, [NONE] * stages  # a virtual stage lies on one route only
        for route in program.routes:
            for here, there in pairwise(route):
                after[here], before[there] = there, here
        self.before, self.after = before, after
        self.forward_end = [[UNKNOWN] * stages for _ in range(program.microbatches)]
        self.grad_end = [[UNKNOWN] * stages for _ in range(program.microbatches)]

    def ready(self, slot: Slot, device: int) -> float | None:
        """The moment all inputs have arrived, or None while one is not even computed."""
        latest = 0.0
        for kind, mb, stage in slot:
            if kind is Pass.FORWARD:
                source, ends = self.before[stage], self.forward_end[mb]
            elif kind is Pass.WEIGHT_GRAD:
                source, ends = stage, self.grad_end[mb]
            else:
                own = self.forward_end[mb][stage]
                if own < 0:
                    return None
                latest = max(latest, own)
                source, ends = self.after[stage], self.grad_end[mb]
            if source == NONE:
                continue
            end = ends[source]
            if end < 0:
                return None
            latest = max(latest, end + self.p2p_s if self.device_of[source] != device else end)
        return latest

    def done(self, slot: Slot, end: float) -> None:
        """Notes what a finished slot made available."""
        for kind, mb, stage in slot:
            if kind is Pass.FORWARD:
                self.forward_end[mb][stage] = end
            elif kind is not Pass.WEIGHT_GRAD:
                self.grad_end[mb][stage] = end
