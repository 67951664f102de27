# ruff: noqa: E501
"""Training steps with one fault, as profiler traces of a small run; half of them with a second, smaller fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from stallwise.drill.incident import EXACT, WORKED_OUT, Decisive, Plot, exhibit
from stallwise.drill.papers.dice import Dice
from stallwise.drill.papers.scripted_run import ScriptedRun
from stallwise.drill.scenarios._planted import planted
from stallwise.units import Unit

STEPS = 5
Body = Callable[[ScriptedRun, int, float], None]  # the last number scales the fault
CARDS = (("NVIDIA H200", 150e9), ("NVIDIA H100 80GB HBM3", 85e9))


def _loader(run: ScriptedRun, number: int, scale: float) -> None:
    with run.span("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
        run.host(15_000 * scale)


def _pageable(run: ScriptedRun, number: int, scale: float) -> None:
    run.copy("HtoD (Pageable -> Device)", 200e6 * scale, 9_000 * scale, blocking=True)


def _offload(run: ScriptedRun, number: int, scale: float) -> None:
    for kind in ("DtoH (Device -> Pinned)", "HtoD (Pinned -> Device)"):
        for _ in range(6):
            run.copy(kind, 80e6 * scale, 1_500 * scale)
        run.sync()
        run.host(300)


def _collector(run: ScriptedRun, number: int, scale: float) -> None:
    run.sync()
    with run.span("<built-in method collect of module gc>", "python_function"):
        run.host(20_000 * scale)


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


def _whole(dice: Dice, setup: str, body: Callable[[ScriptedRun, int], None], *, number: Decisive) -> Plot:
    """A step that is the fault, in some runs with a smaller one at its end."""
    second = dice.pick(*SMALLER) if dice.chance(0.4) else None

    def both(run: ScriptedRun, number: int) -> None:
        body(run, number)
        if second:
            run.sync()  # the host has caught up, so that this costs time and is not hidden behind the queue
            SMALLER[second](run, number, 0.7 * SMALLER_SHARE)  # these steps are shorter

    return _traced(dice, setup, both, (second,) if second else (), number=number)


def _traced(
    dice: Dice, setup: str, body: Callable[[ScriptedRun, int], None], also: tuple[str, ...] = (), *, number: Decisive
) -> Plot:
    name, memory = dice.pick(*CARDS)
    run = ScriptedRun(name, memory)
    for place in range(STEPS):
        with run.step():
            body(run, place)
    text = json.dumps(run.document())
    use = round(100 * run.busy_share)
    return Plot(setup.format(gpu=name), (exhibit("trace", "trace.json", text),), number, also, use)


# A second fault, an order smaller than the first: worth naming, not worth starting with.
SMALLER: dict[str, Body] = {"input-starved": _loader, "python-gc-pauses": _collector, "h2d-copy-exposed": _pageable}
SMALLER_SHARE = 0.15


def _beside(dice: Dice, cause: str, fault: Body, setup: str, *, number: Callable[[float], Decisive]) -> Plot:
    """A healthy step with this fault after (or before) it; the number is known when the fault's size is."""
    layers, gemm, scale = dice.whole(7, 10), dice.between(380, 520), dice.between(1.0, 1.6)
    # Copies both ways in one step are what offloading looks like: no trace could tell those two faults from it.
    fitting = [
        c
        for c in SMALLER
        if c != cause and not (cause in ("host-sync", "cpu-offload-transfers") and c == "h2d-copy-exposed")
    ]
    second = dice.pick(*fitting) if dice.chance(0.4) and cause != "checkpoint-stall" else None
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

    return _traced(dice, setup, body, (second,) if second else (), number=number(scale))


@planted("input-starved")
def loader(dice: Dice) -> Plot:
    return _beside(
        dice,
        "input-starved",
        _loader,
        "Training on one {gpu} reaches half of the throughput its arithmetic suggests. A larger model on the same data is hardly slower. Why?",
        number=lambda x: Decisive(
            "How long does the host wait at the start of each step?", 15000 * 1e-6 * x, Unit.SECOND
        ),
    )


@planted("h2d-copy-exposed")
def pageable(dice: Dice) -> Plot:
    return _beside(
        dice,
        "h2d-copy-exposed",
        _pageable,
        "A vision model on a {gpu} got large images; the step grew by more than its kernels did. Why?",
        number=lambda x: Decisive(
            "How long does the copy at the start of each step take?", 9000 * 1e-6 * x, Unit.SECOND
        ),
    )


@planted("cpu-offload-transfers")
def offload(dice: Dice) -> Plot:
    return _beside(
        dice,
        "cpu-offload-transfers",
        _offload,
        "Since a memory setting was switched on, the run on a {gpu} fits easily and is a third slower. Why?",
        number=lambda x: Decisive(
            "How long do all copies of a step take together, both ways?", 18000 * 1e-6 * x, Unit.SECOND
        ),
    )


@planted("python-gc-pauses")
def collector(dice: Dice) -> Plot:
    return _beside(
        dice,
        "python-gc-pauses",
        _collector,
        "Steps on a {gpu} have a pause in which nothing runs on the device, and the loader is ready. What is it?",
        number=lambda x: Decisive("How long is the pause in each step?", 20000 * 1e-6 * x, Unit.SECOND),
    )


@planted("allocator-churn")
def allocations(dice: Dice) -> Plot:
    return _beside(
        dice,
        "allocator-churn",
        _allocations,
        "Memory on the {gpu} is nearly full, nothing fails, and the step is slower than on a card with more of it. Why?",
        number=lambda x: Decisive(
            "How long do the driver's calls for memory take in a step, together?", 10200 * 1e-6 * x, Unit.SECOND
        ),
    )


@planted("eval-in-loop")
def validation(dice: Dice) -> Plot:
    return _beside(
        dice,
        "eval-in-loop",
        _validation,
        "A metric was added to the training loop on a {gpu}; utilisation is as high as before and throughput is lower. Why?",
        number=lambda x: Decisive(
            "How many matrix products of a step have no counterpart in backward?", 8, within=EXACT
        ),
    )


@planted("checkpoint-stall")
def save(dice: Dice) -> Plot:
    return _beside(
        dice,
        "checkpoint-stall",
        _save,
        "Most steps on the {gpu} are fast; now and then one takes ten times as long. The mean suffers. Why?",
        number=lambda x: Decisive(
            "How much longer than the others is the long step?", 380000 * 1e-6 * x, Unit.SECOND, WORKED_OUT
        ),
    )


@planted("host-sync")
def fetch(dice: Dice) -> Plot:
    return _beside(
        dice,
        "host-sync",
        _fetch,
        "Logging was added to a run on a {gpu}; the device now idles at the end of each step. Why?",
        number=lambda x: Decisive(
            "How long does the copy back to the host take in each step?", 5000 * 1e-6 * x, Unit.SECOND
        ),
    )


@planted("launch-bound")
def short_kernels(dice: Dice) -> Plot:
    count, us = dice.whole(250, 350), dice.between(2, 4)

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(count):
            run.op("aten::mm", ("nvjet_sm90_tst_64x64", us), host_us=20)
        run.optimizer(30)

    return _whole(
        dice,
        "A small model on a {gpu} is no faster than on a card of half the speed. Doubling the batch costs nothing. Why?",
        body,
        number=Decisive("How many matrix kernels does a step launch?", count),
    )


@planted("elementwise-unfused")
def chains(dice: Dice) -> Plot:
    gemm, us = dice.between(250, 320), dice.between(110, 150)

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(8):
            run.op("aten::mm", ("nvjet_sm90_tst_256x128", gemm))
            for name in ("mul", "sin", "add", "cos", "mul", "tanh"):
                run.op(f"aten::{name}", (f"vectorized_elementwise_kernel<{name}>", us))
        run.optimizer()

    return _whole(
        dice,
        "The {gpu} is busy all the time, matrix kernels run at a good rate, and MFU is a third of what was planned. Where does time go?",
        body,
        number=Decisive(
            "How much kernel time of a step is not matrix products and not the optimizer?", 48 * us * 1e-6, Unit.SECOND
        ),
    )


@planted("attention-materialized")
def scores(dice: Dice) -> Plot:
    us = dice.between(140, 200)

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(8):
            run.op("aten::mm", ("nvjet_sm90_tst_256x128", 300.0))
            run.op("aten::bmm", ("nvjet_sm90_tst_128x128", 60.0))
            run.op("aten::div", ("vectorized_elementwise_kernel<div>", us))
            run.op("aten::masked_fill_", ("elementwise_kernel<masked_fill>", us))
            run.op("aten::_softmax", ("cunn_SoftMaxForward", us * 1.2))
            run.op("aten::bmm", ("nvjet_sm90_tst_128x128", 60.0))
        run.optimizer()

    return _whole(
        dice,
        "Doubling the sequence length on a {gpu} made the step far more than twice as long. The projections did not. Why?",
        body,
        number=Decisive(
            "How much kernel time of a step lies between the two batched products?", 8 * 3.2 * us * 1e-6, Unit.SECOND
        ),
    )


@planted("optimizer-unfused")
def tensor_by_tensor(dice: Dice) -> Plot:
    count = dice.whole(100, 150)

    def body(run: ScriptedRun, number: int) -> None:
        run.layers(8)
        with run.span("Optimizer.step#Adam.step"):
            for _ in range(count):
                for name in ("mul_", "addcmul_", "sqrt", "addcdiv_"):
                    run.op(f"aten::{name}", (f"vectorized_elementwise_kernel<{name}>", 30.0), host_us=8)

    return _whole(
        dice,
        "A custom optimizer replaced the built-in one; on a {gpu} the step is nearly twice as long. Why?",
        body,
        number=Decisive("How many kernels does the optimizer launch in a step?", 4 * count),
    )


@planted("layout-copies")
def transposes(dice: Dice) -> Plot:
    us = dice.between(130, 180)

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(16):
            run.op("aten::mm", ("nvjet_sm90_tst_256x128", 300.0))
            for _ in range(2):
                with run.span("aten::contiguous", "cpu_op"), run.span("aten::clone", "cpu_op"):
                    run.op("aten::copy_", ("elementwise_kernel<direct_copy_kernel_cuda>", us))
            run.op("aten::add", ("vectorized_elementwise_kernel<add>", 20.0))
        run.optimizer()

    return _whole(
        dice,
        "A refactoring of the attention block left the arithmetic as it was and made the step on a {gpu} half as long again. Why?",
        body,
        number=Decisive("How much kernel time of a step goes to copies on the device?", 32 * us * 1e-6, Unit.SECOND),
    )


@planted("recompute-unneeded")
def recompute(dice: Dice) -> Plot:
    us = dice.between(380, 450)

    def body(run: ScriptedRun, number: int) -> None:
        run.layers(8, us)
        with run.backward():
            for _ in range(8):
                with run.span("autograd::engine::evaluate_function: MulBackward0", "cpu_op"):
                    with run.span("aten::linear", "cpu_op"):
                        run.op("aten::mm", ("nvjet_sm90_tst_256x128_64x4", us))
                    run.op("aten::gelu", ("vectorized_elementwise_kernel<gelu>", us / 20))
        run.optimizer()

    return _whole(
        dice,
        "A 1B model on a {gpu} uses a fifth of the memory, the device is never idle, and the step is a third longer than 6 N D says. Why?",
        body,
        number=Decisive(
            "How much forward kernel time of a step runs a second time?", 8 * 1.05 * us * 1e-6, Unit.SECOND, WORKED_OUT
        ),
    )


@planted("tensor-cores-unused")
def cuda_cores(dice: Dice) -> Plot:
    kernel, us = (
        dice.pick(
            "ampere_sgemm_128x64_tn",
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_simt",
            "ampere_sgemm_128x128_nn",
        ),
        dice.between(700, 1100),
    )

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(20):
            run.op("aten::addmm", (kernel, us))
        run.optimizer()

    return _whole(
        dice,
        "A {gpu} trains at the speed of a card three generations older, at 100% utilisation. Why?",
        body,
        number=Decisive("How much kernel time of a step do the matrix products take?", 20 * us * 1e-6, Unit.SECOND),
    )


@planted("misaligned-shapes")
def odd(dice: Dice) -> Plot:
    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(20):
            run.op("aten::mm", (f"cutlass_80_tensorop_f16_s16816gemm_f16_256x128_32x3_nn_align{align}", us))
        run.optimizer()

    align, us = dice.pick(1, 2), dice.between(700, 1100)
    return _whole(
        dice,
        "A new vocabulary size made the output layer several times slower on a {gpu}, though it grew by less than a percent. Why?",
        body,
        number=Decisive("Which alignment do the names of the slow kernels carry?", align, within=EXACT),
    )


@planted("precision-headroom")
def tf32(dice: Dice) -> Plot:
    us = dice.between(700, 1100)

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(20):
            run.op("aten::addmm", ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", us))
        run.optimizer()

    return _whole(
        dice,
        "A {gpu} trains at 100% utilisation and a quarter of the rate of its data sheet; matrix kernels take nearly all of the time. Why?",
        body,
        number=Decisive("How much kernel time of a step do the matrix products take?", 20 * us * 1e-6, Unit.SECOND),
    )


@planted("input-bursty")
def late_now_and_then(dice: Dice) -> Plot:
    late, wait = dice.whole(1, 3), dice.between(50_000, 90_000)

    def body(run: ScriptedRun, number: int) -> None:
        with run.span("fetch_batch"):
            run.host(wait if number == late else 50)
        run.layers(8)
        run.optimizer()

    return _traced(
        dice,
        "Data comes from a shared file system. Most steps on the {gpu} are fast and some wait very long, at no fixed distance. Why?",
        body,
        number=Decisive("How long is the one long wait?", wait * 1e-6, Unit.SECOND),
    )


@planted("host-work-unattributed")
def unnamed(dice: Dice) -> Plot:
    pause = dice.between(15_000, 25_000)

    def body(run: ScriptedRun, number: int) -> None:
        run.layers(8)
        run.optimizer()
        run.sync()
        run.host(pause)

    return _traced(
        dice,
        "Each step on the {gpu} ends with a pause in which neither an operator nor a kernel runs. What would you capture next?",
        body,
        number=Decisive("How long does the device stand still in each step?", pause * 1e-6, Unit.SECOND, WORKED_OUT),
    )


@planted("decode-bandwidth-bound")
def one_token(dice: Dice) -> Plot:
    us = dice.between(50, 80)

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(40):
            run.op("aten::mm", ("void gemv2T_kernel_val<int, int, __nv_bfloat16>", us), host_us=4)
            run.op("aten::add", ("vectorized_elementwise_kernel<add>", 2.0), host_us=4)

    return _traced(
        dice,
        "Generating text for one user on a {gpu} uses a hundredth of its FLOP rate, with the device never idle. What would make it faster?",
        body,
        number=Decisive("How much kernel time of a step do the vector products take?", 40 * us * 1e-6, Unit.SECOND),
    )


@planted("small-microbatch")
def tiny_passes(dice: Dice) -> Plot:
    passes, us = dice.pick(8, 12, 16), dice.between(4, 7)

    def body(run: ScriptedRun, place: int) -> None:
        for _ in range(passes):
            for _ in range(12):
                with run.span("aten::linear", "cpu_op"):
                    run.op("aten::mm", ("nvjet_sm90_tst_64x64", us), host_us=18)
                run.op("aten::gelu", ("vectorized_elementwise_kernel<gelu>", us / 2), host_us=8)
            with run.backward():
                for _ in range(12):
                    with run.span("autograd::engine::evaluate_function: MmBackward0", "cpu_op"):
                        run.op("aten::mm", ("nvjet_sm90_tst_64x64_NTN", us), host_us=18)
                        run.op("aten::mm", ("nvjet_sm90_tst_64x64_NNN", us), host_us=18)
        run.optimizer(60)

    return _traced(
        dice,
        "To keep the recipe's global batch, gradients are accumulated on one {gpu}; it is used to a third and its memory to a tenth. Why so slow?",
        body,
        number=Decisive("How many matrix kernels does a step launch?", passes * 36),
    )


@planted("profiler-inflated")
def watched(dice: Dice) -> Plot:
    count, us = dice.whole(180, 260), dice.between(45, 60)

    def body(run: ScriptedRun, place: int) -> None:
        for _ in range(count):
            run.op("aten::mm", ("nvjet_sm90_tst_256x128", us), host_us=us * 1.5)
        run.optimizer(30)

    plot = _traced(dice, "A trace of a run on a {gpu} shows gaps between all kernels. The team wants CUDA graphs. Do you?", body,
                   number=Decisive("How long is the step without the profiler?", count * us * 1.03e-6, Unit.SECOND))  # fmt: skip
    clean = f'clean_step = "{count * us * 1.03e-3:.2f}ms"\n'
    return replace(
        plot, exhibits=(replace(plot.exhibits[0], deciding=False), exhibit("train-log", "unprofiled.toml", clean))
    )


@planted("none")
def well(dice: Dice) -> Plot:
    """A step of large products near the card's roof, with nothing between them."""
    size, share = dice.pick(8192, 12288), dice.between(0.68, 0.76)
    us = 2 * size**3 / (989e12 * share) * 1e6

    def body(run: ScriptedRun, place: int) -> None:
        for _ in range(24):
            run.op("aten::mm", ("nvjet_sm90_tst_256x128_64x4_2x1", us), dims=[[size, size], [size, size]])
        run.optimizer(300.0)

    return _traced(
        dice,
        "Utilisation of a {gpu} is 100%, the team asks whether the run can be made faster, and somebody has a list of ideas. What do you say?",
        body,
        number=Decisive("How long is the main kernel?", us * 1e-6, Unit.SECOND),
    )
