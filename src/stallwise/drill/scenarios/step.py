"""Training steps whose host keeps the device waiting, as profiler traces of a small run."""

from __future__ import annotations

from functools import partial

from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.artifacts.scripted_run import ScriptedRun
from stallwise.drill.scenarios import Drawn, planted
from stallwise.drill.scenarios._step_trace import Body, beside, gc_runs, loader_waits, pageable_copy, traced

LAYERS = 8


def _offload(run: ScriptedRun, number: int, scale: float) -> None:
    for kind in ("DtoH (Device -> Pinned)", "HtoD (Pinned -> Device)"):
        for _ in range(6):
            run.copy(kind, 80e6 * scale, 1_500 * scale)
        run.sync()
        run.host(300)


def _allocations(run: ScriptedRun, number: int, scale: float) -> None:
    run.sync()
    for _ in range(6):
        run.call("cudaFree", 900 * scale)
        run.call("cudaMalloc", 800 * scale)


def _fetch(run: ScriptedRun, number: int, scale: float) -> None:
    run.copy("DtoH (Device -> Pageable)", 60e6 * scale, 5_000 * scale, blocking=True)


# Each with what it takes in a step, in microseconds at scale one.
FAULTS: dict[str, tuple[Body, float]] = {
    "input-starved": (loader_waits, 15_000),
    "h2d-copy-exposed": (pageable_copy, 9_000),
    "cpu-offload-transfers": (_offload, 18_000),
    "python-gc-pauses": (gc_runs, 20_000),
    "allocator-churn": (_allocations, 10_200),
    "host-sync": (_fetch, 5_000),
}
for _cause, (_fault, _us) in FAULTS.items():
    planted(_cause, _cause)(partial(beside, cause=_cause, fault=_fault, us=_us))


@planted("eval-in-loop")
def validation(rng: Rng) -> Drawn:
    scale = rng.between(1.0, 1.6)

    def body(run: ScriptedRun, number: int) -> None:
        run.layers(LAYERS)
        run.optimizer()
        with run.span("validation"):
            for _ in range(LAYERS):
                with run.span("aten::linear", "cpu_op"):
                    run.op("aten::mm", ("nvjet_sm90_tst_256x128_64x4", 400.0 * scale))

    return traced(rng, body, LAYERS)


@planted("input-bursty")
def late_now_and_then(rng: Rng) -> Drawn:
    late, wait = rng.whole(1, 3), rng.between(50_000, 90_000)

    def body(run: ScriptedRun, number: int) -> None:
        with run.span("fetch_batch"):
            run.host(wait if number == late else 50)
        run.layers(LAYERS)
        run.optimizer()

    return traced(rng, body, wait * 1e-6)


@planted("host-work-unattributed")
def unnamed(rng: Rng) -> Drawn:
    pause = rng.between(15_000, 25_000)

    def body(run: ScriptedRun, number: int) -> None:
        run.layers(LAYERS)
        run.optimizer()
        run.sync()
        run.host(pause)

    return traced(rng, body, pause * 1e-6)
