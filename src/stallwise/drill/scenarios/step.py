# ruff: noqa: E501
"""Training steps whose host keeps the device waiting, as profiler traces of a small run."""

from __future__ import annotations

from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.artifacts.scripted_run import ScriptedRun
from stallwise.drill.incident import EXACT, WORKED_OUT, Decisive, Plot
from stallwise.drill.scenarios._planted import planted
from stallwise.drill.scenarios._step_trace import beside, gc_runs, loader_waits, pageable_copy, traced
from stallwise.units import Unit


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


def _validation(run: ScriptedRun, number: int, scale: float) -> None:
    with run.span("validation"):
        for _ in range(8):
            with run.span("aten::linear", "cpu_op"):
                run.op("aten::mm", ("nvjet_sm90_tst_256x128_64x4", 400.0 * scale))


def _save(run: ScriptedRun, number: int, scale: float) -> None:
    if number == 3:
        for _ in range(40):
            run.copy("DtoH (Device -> Pageable)", 20e6 * scale, 2_000 * scale, blocking=True)
        run.host(300_000 * scale)


def _fetch(run: ScriptedRun, number: int, scale: float) -> None:
    run.copy("DtoH (Device -> Pageable)", 60e6 * scale, 5_000 * scale, blocking=True)


@planted("input-starved")
def loader(rng: Rng) -> Plot:
    return beside(
        rng,
        "input-starved",
        loader_waits,
        "Training on one {gpu} reaches half of the throughput its arithmetic suggests. A larger model on the same data is hardly slower. Why?",
        number=lambda x: Decisive(
            "How long does the host wait at the start of each step?", 15000 * 1e-6 * x, Unit.SECOND
        ),
    )


@planted("h2d-copy-exposed")
def pageable(rng: Rng) -> Plot:
    return beside(
        rng,
        "h2d-copy-exposed",
        pageable_copy,
        "A vision model on a {gpu} got large images; the step grew by more than its kernels did. Why?",
        number=lambda x: Decisive(
            "How long does the copy at the start of each step take?", 9000 * 1e-6 * x, Unit.SECOND
        ),
    )


@planted("cpu-offload-transfers")
def offload(rng: Rng) -> Plot:
    return beside(
        rng,
        "cpu-offload-transfers",
        _offload,
        "Since a memory setting was switched on, the run on a {gpu} fits easily and is a third slower. Why?",
        number=lambda x: Decisive(
            "How long do all copies of a step take together, both ways?", 18000 * 1e-6 * x, Unit.SECOND
        ),
    )


@planted("python-gc-pauses")
def gc_pauses(rng: Rng) -> Plot:
    return beside(
        rng,
        "python-gc-pauses",
        gc_runs,
        "Steps on a {gpu} have a pause in which nothing runs on the device, and the loader is ready. What is it?",
        number=lambda x: Decisive("How long is the pause in each step?", 20000 * 1e-6 * x, Unit.SECOND),
    )


@planted("allocator-churn")
def allocations(rng: Rng) -> Plot:
    return beside(
        rng,
        "allocator-churn",
        _allocations,
        "Memory on the {gpu} is nearly full, nothing fails, and the step is slower than on a card with more of it. Why?",
        number=lambda x: Decisive(
            "How long do the driver's calls for memory take in a step, together?", 10200 * 1e-6 * x, Unit.SECOND
        ),
    )


@planted("eval-in-loop")
def validation(rng: Rng) -> Plot:
    return beside(
        rng,
        "eval-in-loop",
        _validation,
        "A metric was added to the training loop on a {gpu}; utilisation is as high as before and throughput is lower. Why?",
        number=lambda x: Decisive(
            "How many matrix products of a step have no counterpart in backward?", 8, within=EXACT
        ),
    )


@planted("checkpoint-stall")
def save(rng: Rng) -> Plot:
    return beside(
        rng,
        "checkpoint-stall",
        _save,
        "Most steps on the {gpu} are fast; now and then one takes ten times as long. The mean suffers. Why?",
        number=lambda x: Decisive(
            "How much longer than the others is the long step?", 380000 * 1e-6 * x, Unit.SECOND, WORKED_OUT
        ),
    )


@planted("host-sync")
def fetch(rng: Rng) -> Plot:
    return beside(
        rng,
        "host-sync",
        _fetch,
        "Logging was added to a run on a {gpu}; the device now idles at the end of each step. Why?",
        number=lambda x: Decisive(
            "How long does the copy back to the host take in each step?", 5000 * 1e-6 * x, Unit.SECOND
        ),
    )


@planted("input-bursty")
def late_now_and_then(rng: Rng) -> Plot:
    late, wait = rng.whole(1, 3), rng.between(50_000, 90_000)

    def body(run: ScriptedRun, number: int) -> None:
        with run.span("fetch_batch"):
            run.host(wait if number == late else 50)
        run.layers(8)
        run.optimizer()

    return traced(
        rng,
        "Data comes from a shared file system. Most steps on the {gpu} are fast and some wait very long, at no fixed distance. Why?",
        body,
        number=Decisive("How long is the one long wait?", wait * 1e-6, Unit.SECOND),
    )


@planted("host-work-unattributed")
def unnamed(rng: Rng) -> Plot:
    pause = rng.between(15_000, 25_000)

    def body(run: ScriptedRun, number: int) -> None:
        run.layers(8)
        run.optimizer()
        run.sync()
        run.host(pause)

    return traced(
        rng,
        "Each step on the {gpu} ends with a pause in which neither an operator nor a kernel runs. What would you capture next?",
        body,
        number=Decisive("How long does the device stand still in each step?", pause * 1e-6, Unit.SECOND, WORKED_OUT),
    )
