"""The trace of a small run whose step is made up, in some runs with a second, smaller fault beside the first."""

from __future__ import annotations

import json
from collections.abc import Callable

from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.artifacts.scripted_run import ScriptedRun
from stallwise.drill.incident import Decisive, Plot, exhibit

STEPS = 5
Body = Callable[[ScriptedRun, int, float], None]  # the last number scales the fault
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
    rng: Rng, setup: str, body: Callable[[ScriptedRun, int], None], also: tuple[str, ...] = (), *, number: Decisive
) -> Plot:
    name, memory = rng.pick(*CARDS)
    run = ScriptedRun(name, memory)
    for place in range(STEPS):
        with run.step():
            body(run, place)
    text = json.dumps(run.document())
    use = round(100 * run.busy_share)
    return Plot(setup.format(gpu=name), (exhibit("trace", "trace.json", text),), number, also, use)


def whole(rng: Rng, setup: str, body: Callable[[ScriptedRun, int], None], *, number: Decisive) -> Plot:
    """A step that is the fault, in some runs with a smaller one at its end."""
    second = rng.pick(*SMALLER) if rng.chance(0.4) else None

    def both(run: ScriptedRun, number: int) -> None:
        body(run, number)
        if second:
            run.sync()  # the host has caught up, so that this costs time and is not hidden behind the queue
            SMALLER[second](run, number, 0.7 * SMALLER_SHARE)  # these steps are shorter

    return traced(rng, setup, both, (second,) if second else (), number=number)


def beside(rng: Rng, cause: str, fault: Body, setup: str, *, number: Callable[[float], Decisive]) -> Plot:
    """A healthy step with this fault after (or before) it; the number is known when the fault's size is."""
    layers, gemm, scale = rng.whole(7, 10), rng.between(380, 520), rng.between(1.0, 1.6)
    # Copies both ways in one step are what offloading looks like: no trace could tell those two faults from it.
    fitting = [
        c
        for c in SMALLER
        if c != cause and not (cause in ("host-sync", "cpu-offload-transfers") and c == "h2d-copy-exposed")
    ]
    second = rng.pick(*fitting) if rng.chance(0.4) and cause != "checkpoint-stall" else None
    first = cause in ("input-starved", "h2d-copy-exposed")

    def body(run: ScriptedRun, number: int) -> None:
        if first:
            fault(run, number, scale)
        run.layers(layers, gemm)
        run.optimizer()
        if not first:
            fault(run, number, scale)
        if second:
            run.sync()  # the host has caught up, so that this costs time and is not hidden behind the queue
            SMALLER[second](run, number, SMALLER_SHARE)

    return traced(rng, setup, body, (second,) if second else (), number=number(scale))
