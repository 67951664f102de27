"""Jobs of many workers with faults planted in them, and what each fault truly costs.

The executor here is its own: it follows the program of a schedule slot by slot and shares nothing with the replay that it
tests. What a fault costs is the mean step less the mean step of the same job, with the same noise, without that fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from stallwise.errors import BadRequest
from stallwise.evidence.operations import Work
from stallwise.physics.sim.pipeline import PassTimes
from stallwise.physics.sim.program import Op, Pass, Program
from stallwise.physics.sim.schedules import all_schedules, schedule_named

LABELS = ("forward-compute", "backward-compute", "weight-grad-compute", "forward-send", "forward-recv", "backward-send",
          "backward-recv", "grads-reduce-scatter", "params-all-gather", "optimizer")  # fmt: skip
WORKS = (Work.FORWARD, Work.BACKWARD, Work.WEIGHT_GRAD, Work.FORWARD_SEND, Work.FORWARD_RECEIVE, Work.BACKWARD_SEND,
         Work.BACKWARD_RECEIVE, Work.GRADIENT_SYNC, Work.PARAMETER_GATHER, Work.OPTIMIZER)  # fmt: skip
_PASS = {Pass.FORWARD: 0, Pass.BACKWARD: 1, Pass.INPUT_GRAD: 1, Pass.WEIGHT_GRAD: 2}


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong."""

    kind: str  # worker, stage, sequence, link, gc
    replica: int = -1
    stage: int = -1
    since: int = 0  # place of the step
    size: float = 0.0  # factor, spread of lengths, seconds


@dataclass(frozen=True)
class Plan:
    """A job."""

    schedule: str
    replicas: int
    stages: int
    tensor: int
    microbatches: int
    steps: int
    seed: int
    chunks: int = 1
    forward_s: float = 0.06
    noise: float = 0.01
    p2p_s: float = 0.0006
    sync_s: float = 0.03
    recorded_p2p: bool = True
    clocks_s: float = 0.0  # deviation of the workers' clocks
    faults: tuple[Fault, ...] = ()

    def program(self) -> Program:
        """The schedule's order."""
        module = schedule_named(self.schedule)
        chunks = module.CHUNKS or self.chunks
        n = self.stages * chunks
        one = self.forward_s / chunks
        return module.program(
            self.stages, self.microbatches, chunks, PassTimes((one,) * n, (one,) * n, (one,) * n, p2p_s=self.p2p_s)
        )


@dataclass
class Rows:
    """Operations as they are recorded."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, stage: int, label: int, chunk: int, microbatch: int, begin: np.ndarray, length: np.ndarray) -> None:
        self.rows.append((stage, label, chunk, microbatch, begin.copy(), length.copy()))


def _factors(plan: Plan) -> dict[str, np.ndarray]:
    """Everything random, drawn the same whatever faults there are."""
    rng = np.random.default_rng(plan.seed)
    shape = (plan.replicas, plan.steps)
    long = rng.pareto(2.5, (plan.microbatches, *shape)) + 0.6  # few long documents, many short ones
    return {
        "noise": rng.normal(1.0, plan.noise, (plan.stages, plan.microbatches, 4, 3, *shape)),
        "length": long / long.mean(),
        "pause_at": rng.random((plan.stages, *shape)),
        "pause_s": rng.uniform(0.5, 1.5, (plan.stages, *shape)),
        "pause_in": rng.random((plan.stages, *shape)),
        "between": rng.normal(0.0, 1.0, shape),
    }


def play(plan: Plan, *, recorded: bool = True) -> tuple[np.ndarray, Rows]:
    """Length of each step, and the rows of one executed job."""
    program, drawn, shape = plan.program(), _factors(plan), (plan.replicas, plan.steps)
    stages, own = len(program.devices), _chunks(program)
    rows, zero = Rows(), np.zeros(shape)
    before: dict[int, int] = {}
    after: dict[int, int] = {}
    for route in program.routes:
        for here, there in pairwise(route):
            after[here], before[there] = there, here
    forward_end: dict[tuple[int, int], np.ndarray] = {}
    grad_end: dict[tuple[int, int], np.ndarray] = {}
    clock = [np.full(shape, plan.sync_s * 0.3) for _ in range(stages)]
    for device in range(stages):
        rows.add(device, 8, 0, -1, zero, np.full(shape, plan.sync_s * 0.3))
    pointer = [0] * stages
    while any(pointer[d] < len(program.devices[d]) for d in range(stages)):
        moved = False
        for device in range(stages):
            while pointer[device] < len(program.devices[device]):
                slot = program.devices[device][pointer[device]]
                came = [_inputs(op, before, after, forward_end, grad_end) for op in slot]
                if any(c is None for c in came):
                    break
                start = clock[device]
                for op, inputs in zip(slot, came, strict=True):
                    for source, end in inputs or ():
                        there = program.device_of[source] if source >= 0 else device
                        if there == device:
                            start = np.maximum(start, end)
                            continue
                        moves = _transfer(plan, there, device, shape)
                        posted = np.maximum(end, clock[device])
                        arrived = np.maximum(posted, end) + moves
                        if recorded and plan.recorded_p2p:
                            direction = 3 if op.kind is Pass.FORWARD else 5
                            rows.add(there, direction, own[source], -1, posted, moves)
                            rows.add(device, direction + 1, own[op.stage], -1, posted, moves)
                        start = np.maximum(start, arrived)
                start = start + _pause(plan, drawn, device, pointer[device], len(program.devices[device]), shape)
                length = sum((_length(plan, drawn, op, device, own[op.stage], shape) for op in slot), zero)
                for op in slot:
                    rows.add(device, _PASS[op.kind], own[op.stage], op.microbatch, start, length)
                    (forward_end if op.kind is Pass.FORWARD else grad_end if op.kind is not Pass.WEIGHT_GRAD else {})[
                        op.microbatch, op.stage
                    ] = start + length
                clock[device] = start + length
                pointer[device] += 1
                moved = True
        assert moved, "the schedule deadlocks"
    last = zero
    for device in range(stages):
        begin = np.broadcast_to(clock[device].max(axis=0), shape)
        rows.add(device, 7, 0, -1, clock[device], begin - clock[device] + plan.sync_s)
        rows.add(device, 9, 0, -1, begin + plan.sync_s, np.full(shape, plan.sync_s * 0.2))
        last = np.maximum(last, begin + plan.sync_s * 1.2)
    return last.max(axis=0), rows


def _chunks(program: Program) -> list[int]:
    seen: dict[int, int] = {}
    own = []
    for device in program.device_of:
        own.append(seen.get(device, 0))
        seen[device] = own[-1] + 1
    return own


def _inputs(op: Op, before: dict[int, int], after: dict[int, int], forward_end: Any, grad_end: Any) -> Any:
    """(virtual stage it comes from, when it was ready) of all that a pass needs; None while one is not computed."""
    needs: list[tuple[int, Any]] = []
    if op.kind is Pass.FORWARD:
        if op.stage in before:
            needs.append((before[op.stage], forward_end.get((op.microbatch, before[op.stage]))))
    elif op.kind is Pass.WEIGHT_GRAD:
        needs.append((op.stage, grad_end.get((op.microbatch, op.stage))))
    else:
        needs.append((op.stage, forward_end.get((op.microbatch, op.stage))))
        if op.stage in after:
            needs.append((after[op.stage], grad_end.get((op.microbatch, after[op.stage]))))
    return None if any(end is None for _, end in needs) else needs


def _length(plan: Plan, drawn: Any, op: Op, device: int, chunk: int, shape: tuple[int, int]) -> np.ndarray:
    one = plan.forward_s / (max(_chunk_count(plan), 1))
    base = {Pass.FORWARD: one, Pass.BACKWARD: 2 * one, Pass.INPUT_GRAD: one, Pass.WEIGHT_GRAD: one}[op.kind]
    length = base * drawn["noise"][device, op.microbatch, chunk % 4, _PASS[op.kind]]
    for fault in plan.faults:
        if fault.kind == "stage" and device == fault.stage:
            length = length * fault.size
        elif fault.kind == "worker" and device == fault.stage:
            slow = np.ones(shape)
            slow[fault.replica, fault.since :] = fault.size
            length = length * slow
        elif fault.kind == "sequence":
            length = length * (1 + fault.size * (drawn["length"][op.microbatch] - 1))
    return length


def _chunk_count(plan: Plan) -> int:
    return schedule_named(plan.schedule).CHUNKS or plan.chunks


def _transfer(plan: Plan, there: int, here: int, shape: tuple[int, int]) -> np.ndarray:
    moves = np.full(shape, plan.p2p_s)
    for fault in plan.faults:
        if fault.kind == "link" and fault.stage in (there, here) and fault.stage + 1 in (there, here):
            if fault.replica < 0:
                moves = moves + fault.size
            else:
                moves[fault.replica] += fault.size
    return moves


def _pause(plan: Plan, drawn: Any, device: int, slot: int, slots: int, shape: tuple[int, int]) -> np.ndarray:
    held = np.zeros(shape)
    for fault in plan.faults:
        if fault.kind == "gc":  # `since` counts percents of workers and steps here
            now = (drawn["pause_at"][device] < fault.since / 100) & (
                (drawn["pause_in"][device] * slots).astype(int) == slot
            )
            held = held + np.where(now, fault.size * drawn["pause_s"][device], 0.0)
    return held


def costs(plan: Plan) -> dict[str, float]:
    """Seconds of a mean step that each fault costs."""
    whole = float(play(plan, recorded=False)[0].mean())
    found = {}
    for at, fault in enumerate(plan.faults):
        rest = tuple(f for i, f in enumerate(plan.faults) if i != at)
        found[fault.kind] = whole - float(play(replace(plan, faults=rest), recorded=False)[0].mean())
    return found


def columns(plan: Plan) -> dict[str, np.ndarray]:
    """The operation table of the job, in no particular order of rows."""
    steps_s, rows = play(plan)
    origin = np.concatenate(([0.0], np.cumsum(steps_s)[:-1]))
    replica, step = np.meshgrid(np.arange(plan.replicas), np.arange(plan.steps), indexing="ij")
    clock_s = np.random.default_rng(plan.seed + 1).normal(0.0, plan.clocks_s, (plan.stages, plan.replicas, 1))
    count = plan.tensor * len(rows.rows)
    places = {name: np.empty((count, replica.size), np.int32) for name in
        ("replica", "stage", "tensor", "step", "microbatch", "chunk", "order", "label")}  # fmt: skip
    times = {name: np.empty((count, replica.size)) for name in ("start_s", "duration_s")}
    places["replica"][:], places["step"][:], places["order"][:] = replica.ravel(), step.ravel() + 100, -1
    for at in range(count):
        tensor, row = divmod(at, len(rows.rows))
        stage, label, chunk, microbatch, begin, length = rows.rows[row]
        same = {
            "stage": stage,
            "tensor": tensor,
            "microbatch": microbatch,
            "chunk": chunk if label < 3 else -1,
            "label": label,
        }
        for name, value in same.items():
            places[name][at] = value
        times["start_s"][at] = (begin + origin + clock_s[stage]).ravel()
        times["duration_s"][at] = length.ravel()
    return {name: values.ravel() for name, values in (places | times).items()}


MOST_ROWS = 3_000_000


def random_plan(seed: int, *, largest: int = 32) -> Plan:
    """A job with one to three faults, each worth at least three percent of its step."""
    rng = np.random.default_rng(seed)
    for _ in range(400):
        plan = _drawn(rng, largest)
        try:
            plan.program()
        except BadRequest:
            continue
        rows = plan.stages * plan.microbatches * 7 * plan.replicas * plan.steps * plan.tensor
        if rows > MOST_ROWS:
            continue
        whole = float(play(plan, recorded=False)[0].mean())
        worth = list(costs(plan).values())
        first_two = sorted(worth, reverse=True)[:2]
        apart = len(first_two) < 2 or first_two[0] > 1.15 * first_two[1]  # which is first must have an answer
        # Without a pipeline only many microbatches tell a slow worker from one that got long sequences.
        both = plan.stages == 1 and {"worker", "sequence"} <= {f.kind for f in plan.faults}
        separable = not both or plan.microbatches * plan.steps >= 64
        if min(worth) >= 0.03 * whole and apart and separable:
            return plan
    raise AssertionError("no plan")


def _drawn(rng: np.random.Generator, largest: int) -> Plan:
    schedule = str(rng.choice(sorted(all_schedules())))
    stages = int(rng.choice([1, 2, 3, 4, 6, 8, 12, 16]))
    schedule = schedule if stages > 1 else "1f1b"
    replicas = int(rng.choice([r for r in (2, 3, 4, 6, 8, 12, 16, 24, 32) if r <= largest]))
    microbatches = stages * int(rng.choice([1, 2, 3])) if stages > 1 else int(rng.choice([1, 2, 4, 8]))
    kinds = ["worker", "sequence", "gc"] + (["stage", "link"] if stages > 1 else [])
    chosen = rng.choice(kinds, size=int(rng.integers(1, 4)), replace=False)
    forward_s = float(rng.uniform(0.02, 0.2))
    steps = int(rng.choice([6, 8, 12, 20]))
    faults = tuple(_fault(rng, kind, replicas, stages, steps, forward_s, microbatches) for kind in chosen.tolist())
    return Plan(
        schedule, replicas, stages, int(rng.choice([1, 2, 4, 8])), microbatches, steps, int(rng.integers(1 << 30)),
        chunks=2 if schedule == "interleaved" else 1, forward_s=forward_s, recorded_p2p=bool(rng.random() < 0.6),
        clocks_s=float(rng.choice([0.0, 0.0, 0.002, 0.3])), faults=faults,
    )  # fmt: skip


def _fault(
    rng: np.random.Generator, kind: str, replicas: int, stages: int, steps: int, forward_s: float, microbatches: int
) -> Fault:
    replica, stage = int(rng.integers(replicas)), int(rng.integers(stages))
    if kind == "worker":
        return Fault(kind, replica, stage, int(rng.choice([0, 0, steps // 3])), float(rng.uniform(1.25, 2.5)))
    if kind == "stage":
        return Fault(kind, stage=stage, size=float(rng.uniform(1.2, 1.8)))
    if kind == "sequence":
        return Fault(kind, size=float(rng.uniform(0.3, 0.9)))
    if kind == "link":
        whole = replica if rng.random() < 0.5 or stages < 4 else -1
        return Fault(kind, whole, int(rng.integers(stages - 1)), size=forward_s * float(rng.uniform(0.3, 1.5)))
    length = forward_s * 3 * microbatches * float(rng.uniform(0.1, 0.5))
    return Fault(kind, since=int(rng.uniform(2, 12)), size=length)
