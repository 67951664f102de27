"""Training steps whose device does the wrong work, or the right work badly, as profiler traces of a small run."""

from __future__ import annotations

from dataclasses import replace

from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.artifacts.scripted_run import ScriptedRun
from stallwise.drill.incident import exhibit
from stallwise.drill.scenarios import Drawn, planted
from stallwise.drill.scenarios._step_trace import elementwise, repeated, traced, whole

GEMM = "nvjet_sm90_tst_256x128"
FP32 = (
    "ampere_sgemm_128x64_tn",
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_simt",
    "ampere_sgemm_128x128_nn",
)
TF32 = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16"
ALIGNED = "cutlass_80_tensorop_f16_s16816gemm_f16_256x128_32x3_nn_align{}"


@planted("launch-bound")
def short_kernels(rng: Rng) -> Drawn:
    count, us = rng.whole(250, 350), rng.between(2, 4)
    return repeated(rng, count, [("mm", "nvjet_sm90_tst_64x64", us)], count, host_us=20, optimizer_us=30)


@planted("elementwise-unfused")
def chains(rng: Rng) -> Drawn:
    gemm, us = rng.between(250, 320), rng.between(110, 150)
    chain = [elementwise(op, us) for op in ("mul", "sin", "add", "cos", "mul", "tanh")]
    return repeated(rng, 8, [("mm", GEMM, gemm), *chain], 48 * us * 1e-6)


@planted("attention-materialized")
def scores(rng: Rng) -> Drawn:
    us, product = rng.between(140, 200), ("bmm", "nvjet_sm90_tst_128x128", 60.0)
    between = [elementwise("div", us), elementwise("masked_fill_", us), ("_softmax", "cunn_SoftMaxForward", us * 1.2)]
    return repeated(rng, 8, [("mm", GEMM, 300.0), product, *between, product], 8 * 3.2 * us * 1e-6)


@planted("tensor-cores-unused")
def cuda_cores(rng: Rng) -> Drawn:
    us = rng.between(700, 1100)
    return repeated(rng, 20, [("addmm", rng.pick(*FP32), us)], 20 * us * 1e-6)


@planted("misaligned-shapes")
def odd(rng: Rng) -> Drawn:
    align = rng.pick(1, 2)
    return repeated(rng, 20, [("mm", ALIGNED.format(align), rng.between(700, 1100))], align)


@planted("precision-headroom")
def tf32(rng: Rng) -> Drawn:
    us = rng.between(700, 1100)
    return repeated(rng, 20, [("addmm", TF32, us)], 20 * us * 1e-6)


@planted("optimizer-unfused")
def tensor_by_tensor(rng: Rng) -> Drawn:
    count = rng.whole(100, 150)

    def body(run: ScriptedRun, number: int) -> None:
        run.layers(8)
        with run.span("Optimizer.step#Adam.step"):
            for _ in range(count):
                for op in ("mul_", "addcmul_", "sqrt", "addcdiv_"):
                    run.op(f"aten::{op}", elementwise(op, 30.0)[1:], host_us=8)

    return whole(rng, body, 4 * count)


@planted("layout-copies")
def transposes(rng: Rng) -> Drawn:
    us = rng.between(130, 180)

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(16):
            run.op("aten::mm", (GEMM, 300.0))
            for _ in range(2):
                with run.span("aten::contiguous", "cpu_op"), run.span("aten::clone", "cpu_op"):
                    run.op("aten::copy_", ("elementwise_kernel<direct_copy_kernel_cuda>", us))
            run.op("aten::add", elementwise("add", 20.0)[1:])
        run.optimizer()

    return whole(rng, body, 32 * us * 1e-6)


@planted("recompute-unneeded")
def recompute(rng: Rng) -> Drawn:
    us = rng.between(380, 450)

    def body(run: ScriptedRun, number: int) -> None:
        run.layers(8, us)
        with run.backward():
            for _ in range(8):
                with run.span("autograd::engine::evaluate_function: MulBackward0", "cpu_op"):
                    with run.span("aten::linear", "cpu_op"):
                        run.op("aten::mm", ("nvjet_sm90_tst_256x128_64x4", us))
                    run.op("aten::gelu", elementwise("gelu", us / 20)[1:])
        run.optimizer()

    return whole(rng, body, 8 * 1.05 * us * 1e-6)


@planted("decode-bandwidth-bound")
def one_token(rng: Rng) -> Drawn:
    us = rng.between(50, 80)

    def body(run: ScriptedRun, number: int) -> None:
        for _ in range(40):
            run.op("aten::mm", ("void gemv2T_kernel_val<int, int, __nv_bfloat16>", us), host_us=4)
            run.op("aten::add", elementwise("add", 2.0)[1:], host_us=4)

    return traced(rng, body, 40 * us * 1e-6)


@planted("small-microbatch")
def tiny_passes(rng: Rng) -> Drawn:
    passes, us = rng.pick(8, 12, 16), rng.between(4, 7)

    def body(run: ScriptedRun, place: int) -> None:
        for _ in range(passes):
            for _ in range(12):
                with run.span("aten::linear", "cpu_op"):
                    run.op("aten::mm", ("nvjet_sm90_tst_64x64", us), host_us=18)
                run.op("aten::gelu", elementwise("gelu", us / 2)[1:], host_us=8)
            with run.backward():
                for _ in range(12):
                    with run.span("autograd::engine::evaluate_function: MmBackward0", "cpu_op"):
                        run.op("aten::mm", ("nvjet_sm90_tst_64x64_NTN", us), host_us=18)
                        run.op("aten::mm", ("nvjet_sm90_tst_64x64_NNN", us), host_us=18)
        run.optimizer(60)

    return traced(rng, body, passes * 36)


@planted("profiler-inflated")
def watched(rng: Rng) -> Drawn:
    count, us = rng.whole(180, 260), rng.between(45, 60)

    def body(run: ScriptedRun, place: int) -> None:
        for _ in range(count):
            run.op("aten::mm", (GEMM, us), host_us=us * 1.5)
        run.optimizer(30)

    made, clean_ms = traced(rng, body, count * us * 1.03e-6), count * us * 1.03e-3
    log = "".join(
        f"step {n} loss {2.4 - n / 1000:.4f} step_time {rng.near(clean_ms, 0.004):.2f}ms\n" for n in range(100, 160)
    )
    trace = replace(made.exhibits[0], deciding=False)
    return replace(made, exhibits=(trace, exhibit("train-log", "without_profiler.log", log)))


@planted("none")
def well(rng: Rng) -> Drawn:
    """A step of large products near the card's peak, with nothing between them."""
    size, share = rng.pick(8192, 12288), rng.between(0.68, 0.76)
    us = 2 * size**3 / (989e12 * share) * 1e6

    def body(run: ScriptedRun, place: int) -> None:
        for _ in range(24):
            run.op("aten::mm", ("nvjet_sm90_tst_256x128_64x4_2x1", us), dims=[[size, size], [size, size]])
        run.optimizer(300.0)

    return traced(rng, body, us * 1e-6)
