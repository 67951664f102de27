"""The trace of a small run whose step is made up, in some runs with a second, smaller fault beside the first."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.artifacts.scripted_run import ScriptedRun
from stallwise.drill.incident import exhibit
from stallwise.drill.scenarios import Drawn, drawn

STEPS = 5
Body = Callable[[ScriptedRun, int, float], None]  # the last number scales the fault
Op = tuple[str, str, float]  # operator, kernel, microseconds
CARDS = (("NVIDIA H200", 150e9), ("NVIDIA H100 80GB HBM3", 85e9))


def loader_waits(run: ScriptedRun, number: int, scale: float) -> None:
    with run.span("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
        run.host(15_000 * scale)


def pageable_copy(run: ScriptedRun, number: int, scale: float) -> None:
    run.copy("HtoD (Pageable -> Device)", 200e6 * scale, 9_000 * scale, blocking=True)


def gc_runs(run: ScriptedRun, number: int, scale: float) -> None:
    run.sync()
    with run.span("<built-in method collect of module gc>", "python_function"):
        run.host(20_000 * scale)


# A second fault, an order smaller than the first: worth naming, not worth starting with.
SMALLER: dict[str, Body] = {
    "input-starved": loader_waits,
    "python-gc-pauses": gc_runs,
    "h2d-copy-exposed": pageable_copy,
}
SMALLER_SHARE = 0.15


def traced(
    rng: Rng, body: Callable[[ScriptedRun, int], None], value: float, also: str = "", scale: float = SMALLER_SHARE
) -> Drawn:
    """Five steps of this body; `also` is a smaller fault at the end of each."""
    name, memory = rng.pick(*CARDS)
    run = ScriptedRun(name, memory)
    for place in range(STEPS):
        with run.step():
            body(run, place)
            if also:
                run.sync()  # the host has caught up, so that this costs time and is not hidden behind the queue
                SMALLER[also](run, place, scale)
    trace = exhibit("trace", "trace.json", json.dumps(run.document()))
    return drawn(value, trace, also=(also,) if also else (), gpu_use=round(100 * run.busy_share), gpu=name)


def whole(rng: Rng, body: Callable[[ScriptedRun, int], None], value: float) -> Drawn:
    """A step that is the fault, in some runs with a smaller one at its end."""
    also = rng.pick(*SMALLER) if rng.chance(0.4) else ""
    return traced(rng, body, value, also, 0.7 * SMALLER_SHARE)  # these steps are shorter


def repeated(
    rng: Rng, count: int, ops: Sequence[Op], value: float, *, host_us: float = 6.0, optimizer_us: float = 300.0
) -> Drawn:
    """A step of these operators, so many times, that is the fault."""

    def body(run: ScriptedRun, place: int) -> None:
        for _ in range(count):
            for op, kernel, us in ops:
                run.op(f"aten::{op}", (kernel, us), host_us=host_us)
        run.optimizer(optimizer_us)

    return whole(rng, body, value)


def elementwise(op: str, us: float) -> Op:
    """An operator that only moves memory."""
    return op, f"vectorized_elementwise_kernel<{op}>", us


def beside(rng: Rng, cause: str, fault: Body, us: float) -> Drawn:
    """A healthy step with this fault after (or before) it, which takes so many microseconds at scale one."""
    layers, gemm, scale = rng.whole(7, 10), rng.between(380, 520), rng.between(1.0, 1.6)
    # Copies both ways in one step are what offloading looks like: no trace could tell those two faults from it.
    both_ways = cause in ("host-sync", "cpu-offload-transfers")
    fitting = [c for c in SMALLER if c != cause and not (both_ways and c == "h2d-copy-exposed")]
    first = cause in ("input-starved", "h2d-copy-exposed")

    def body(run: ScriptedRun, number: int) -> None:
        if first:
            fault(run, number, scale)
        run.layers(layers, gemm)
        run.optimizer()
        if not first:
            fault(run, number, scale)

    return traced(rng, body, us * 1e-6 * scale, rng.pick(*fitting) if rng.chance(0.4) else "")
