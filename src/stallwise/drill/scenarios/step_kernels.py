# ruff: noqa: E501
"""Training steps whose device does the wrong work, or the right work badly, as profiler traces of a small run."""

from __future__ import annotations

from dataclasses import replace

from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.artifacts.scripted_run import ScriptedRun
from stallwise.drill.incident import EXACT, WORKED_OUT, Decisive, Plot, exhibit
from stallwise.drill.scenarios._planted import planted
from stallwise.drill.scenarios._step_trace import traced, whole
from stallwise.units import Unit


@planted("launch-bound")
def short_kernels(rng: Rng) -> Plot:
    count, us = rng.whole(250, 350), rng.between(2, 4)

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(count):
            run.op("aten::mm", ("nvjet_sm90_tst_64x64", us), host_us=20)
        run.optimizer(30)

    return whole(
        rng,
        "A small model on a {gpu} is no faster than on a card of half the speed. Doubling the batch costs nothing. Why?",
        body,
        number=Decisive("How many matrix kernels does a step launch?", count),
    )


@planted("elementwise-unfused")
def chains(rng: Rng) -> Plot:
    gemm, us = rng.between(250, 320), rng.between(110, 150)

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(8):
            run.op("aten::mm", ("nvjet_sm90_tst_256x128", gemm))
            for name in ("mul", "sin", "add", "cos", "mul", "tanh"):
                run.op(f"aten::{name}", (f"vectorized_elementwise_kernel<{name}>", us))
        run.optimizer()

    return whole(
        rng,
        "The {gpu} is busy all the time, matrix kernels run at a good rate, and MFU is a third of what was planned. Where does time go?",
        body,
        number=Decisive(
            "How much kernel time of a step is not matrix products and not the optimizer?", 48 * us * 1e-6, Unit.SECOND
        ),
    )


@planted("attention-materialized")
def scores(rng: Rng) -> Plot:
    us = rng.between(140, 200)

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(8):
            run.op("aten::mm", ("nvjet_sm90_tst_256x128", 300.0))
            run.op("aten::bmm", ("nvjet_sm90_tst_128x128", 60.0))
            run.op("aten::div", ("vectorized_elementwise_kernel<div>", us))
            run.op("aten::masked_fill_", ("elementwise_kernel<masked_fill>", us))
            run.op("aten::_softmax", ("cunn_SoftMaxForward", us * 1.2))
            run.op("aten::bmm", ("nvjet_sm90_tst_128x128", 60.0))
        run.optimizer()

    return whole(
        rng,
        "Doubling the sequence length on a {gpu} made the step far more than twice as long. The projections did not. Why?",
        body,
        number=Decisive(
            "How much kernel time of a step lies between the two batched products?", 8 * 3.2 * us * 1e-6, Unit.SECOND
        ),
    )


@planted("optimizer-unfused")
def tensor_by_tensor(rng: Rng) -> Plot:
    count = rng.whole(100, 150)

    def body(run: ScriptedRun, number: int) -> None:
        run.layers(8)
        with run.span("Optimizer.step#Adam.step"):
            for _ in range(count):
                for name in ("mul_", "addcmul_", "sqrt", "addcdiv_"):
                    run.op(f"aten::{name}", (f"vectorized_elementwise_kernel<{name}>", 30.0), host_us=8)

    return whole(
        rng,
        "A custom optimizer replaced the built-in one; on a {gpu} the step is nearly twice as long. Why?",
        body,
        number=Decisive("How many kernels does the optimizer launch in a step?", 4 * count),
    )


@planted("layout-copies")
def transposes(rng: Rng) -> Plot:
    us = rng.between(130, 180)

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(16):
            run.op("aten::mm", ("nvjet_sm90_tst_256x128", 300.0))
            for _ in range(2):
                with run.span("aten::contiguous", "cpu_op"), run.span("aten::clone", "cpu_op"):
                    run.op("aten::copy_", ("elementwise_kernel<direct_copy_kernel_cuda>", us))
            run.op("aten::add", ("vectorized_elementwise_kernel<add>", 20.0))
        run.optimizer()

    return whole(
        rng,
        "A refactoring of the attention block left the arithmetic as it was and made the step on a {gpu} half as long again. Why?",
        body,
        number=Decisive("How much kernel time of a step goes to copies on the device?", 32 * us * 1e-6, Unit.SECOND),
    )


@planted("recompute-unneeded")
def recompute(rng: Rng) -> Plot:
    us = rng.between(380, 450)

    def body(run: ScriptedRun, number: int) -> None:
        run.layers(8, us)
        with run.backward():
            for _ in range(8):
                with run.span("autograd::engine::evaluate_function: MulBackward0", "cpu_op"):
                    with run.span("aten::linear", "cpu_op"):
                        run.op("aten::mm", ("nvjet_sm90_tst_256x128_64x4", us))
                    run.op("aten::gelu", ("vectorized_elementwise_kernel<gelu>", us / 20))
        run.optimizer()

    return whole(
        rng,
        "A 1B model on a {gpu} uses a fifth of the memory, the device is never idle, and the step is a third longer than 6 N D says. Why?",
        body,
        number=Decisive(
            "How much forward kernel time of a step runs a second time?", 8 * 1.05 * us * 1e-6, Unit.SECOND, WORKED_OUT
        ),
    )


@planted("tensor-cores-unused")
def cuda_cores(rng: Rng) -> Plot:
    kernel, us = (
        rng.pick(
            "ampere_sgemm_128x64_tn",
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_simt",
            "ampere_sgemm_128x128_nn",
        ),
        rng.between(700, 1100),
    )

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(20):
            run.op("aten::addmm", (kernel, us))
        run.optimizer()

    return whole(
        rng,
        "A {gpu} trains at the speed of a card three generations older, at 100% utilisation. Why?",
        body,
        number=Decisive("How much kernel time of a step do the matrix products take?", 20 * us * 1e-6, Unit.SECOND),
    )


@planted("misaligned-shapes")
def odd(rng: Rng) -> Plot:
    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(20):
            run.op("aten::mm", (f"cutlass_80_tensorop_f16_s16816gemm_f16_256x128_32x3_nn_align{align}", us))
        run.optimizer()

    align, us = rng.pick(1, 2), rng.between(700, 1100)
    return whole(
        rng,
        "A new vocabulary size made the output layer several times slower on a {gpu}, though it grew by less than a percent. Why?",
        body,
        number=Decisive("Which alignment do the names of the slow kernels carry?", align, within=EXACT),
    )


@planted("precision-headroom")
def tf32(rng: Rng) -> Plot:
    us = rng.between(700, 1100)

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(20):
            run.op("aten::addmm", ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", us))
        run.optimizer()

    return whole(
        rng,
        "A {gpu} trains at 100% utilisation and a quarter of the rate of its data sheet; matrix kernels take nearly all of the time. Why?",
        body,
        number=Decisive("How much kernel time of a step do the matrix products take?", 20 * us * 1e-6, Unit.SECOND),
    )


@planted("decode-bandwidth-bound")
def one_token(rng: Rng) -> Plot:
    us = rng.between(50, 80)

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(40):
            run.op("aten::mm", ("void gemv2T_kernel_val<int, int, __nv_bfloat16>", us), host_us=4)
            run.op("aten::add", ("vectorized_elementwise_kernel<add>", 2.0), host_us=4)

    return traced(
        rng,
        "Generating text for one user on a {gpu} uses a hundredth of its FLOP rate, with the device never idle. What would make it faster?",
        body,
        number=Decisive("How much kernel time of a step do the vector products take?", 40 * us * 1e-6, Unit.SECOND),
    )


@planted("small-microbatch")
def tiny_passes(rng: Rng) -> Plot:
    passes, us = rng.pick(8, 12, 16), rng.between(4, 7)

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

    return traced(
        rng,
        "To keep the recipe's global batch, gradients are accumulated on one {gpu}; it is used to a third and its memory to a tenth. Why so slow?",
        body,
        number=Decisive("How many matrix kernels does a step launch?", passes * 36),
    )


@planted("profiler-inflated")
def watched(rng: Rng) -> Plot:
    count, us = rng.whole(180, 260), rng.between(45, 60)

    def body(run: ScriptedRun, place: int) -> None:
        for _ in range(count):
            run.op("aten::mm", ("nvjet_sm90_tst_256x128", us), host_us=us * 1.5)
        run.optimizer(30)

    plot = traced(rng, "A trace of a run on a {gpu} shows gaps between all kernels. The team wants CUDA graphs. Do you?", body,
                   number=Decisive("How long is the step without the profiler?", count * us * 1.03e-6, Unit.SECOND))  # fmt: skip
    clean = f'clean_step = "{count * us * 1.03e-3:.2f}ms"\n'
    return replace(
        plot, exhibits=(replace(plot.exhibits[0], deciding=False), exhibit("train-log", "unprofiled.toml", clean))
    )


@planted("none")
def well(rng: Rng) -> Plot:
    """A step of large products near the card's roof, with nothing between them."""
    size, share = rng.pick(8192, 12288), rng.between(0.68, 0.76)
    us = 2 * size**3 / (989e12 * share) * 1e6

    def body(run: ScriptedRun, place: int) -> None:
        for _ in range(24):
            run.op("aten::mm", ("nvjet_sm90_tst_256x128_64x4_2x1", us), dims=[[size, size], [size, size]])
        run.optimizer(300.0)

    return traced(
        rng,
        "Utilisation of a {gpu} is 100%, the team asks whether the run can be made faster, and somebody has a list of ideas. What do you say?",
        body,
        number=Decisive("How long is the main kernel?", us * 1e-6, Unit.SECOND),
    )
