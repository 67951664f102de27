"""One fault at a time in a run that is healthy without it: the doctor names it first, by its physics and not by a name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis, State
from tests.measures.scripted_run import ScriptedRun

STEPS = 5


def diagnosed(tmp_path: Path, body: Callable[[ScriptedRun, int], None], steps: int = STEPS) -> Diagnosis:
    run = ScriptedRun()
    for number in range(steps):
        with run.step():
            body(run, number)
    return diagnose(run.write(tmp_path), cache=False)


def healthy_step(run: ScriptedRun, number: int) -> None:
    run.layers(8)
    run.optimizer()


def loader_in_main_process(run: ScriptedRun, number: int) -> None:
    with run.span("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
        run.host(15_000)
    healthy_step(run, number)


def late_batch_now_and_then(run: ScriptedRun, number: int) -> None:
    with run.span("fetch_batch"):
        run.host(60_000 if number == 2 else 50)
    healthy_step(run, number)


def pageable_input(run: ScriptedRun, number: int) -> None:
    run.copy("HtoD (Pageable -> Device)", 200e6, 9_000, blocking=True)
    healthy_step(run, number)


def states_on_the_host(run: ScriptedRun, number: int) -> None:
    healthy_step(run, number)
    for _ in range(6):
        run.copy("DtoH (Device -> Pinned)", 80e6, 1_500)
    run.sync()
    run.host(500)
    for _ in range(6):
        run.copy("HtoD (Pinned -> Device)", 80e6, 1_500)


def value_read_after_each_layer(run: ScriptedRun, number: int) -> None:
    for _ in range(8):
        for _ in range(20):
            run.op("aten::mm", ("nvjet_sm90_tst_64x64", 40.0), host_us=10)
        with run.span("aten::item", "cpu_op"), run.span("aten::_local_scalar_dense", "cpu_op"):
            run.sync()
        run.op("aten::mm", ("nvjet_sm90_tst_64x64", 20.0), host_us=250)
    run.optimizer()


def short_kernels(run: ScriptedRun, number: int) -> None:
    for _ in range(300):
        run.op("aten::mm", ("nvjet_sm90_tst_64x64", 3.0), host_us=20)
    run.optimizer(30)


def collector_frame(run: ScriptedRun, number: int) -> None:
    healthy_step(run, number)
    run.sync()
    with run.span("<built-in method collect of module gc>", "python_function"):
        run.host(20_000)


def unnamed_pause(run: ScriptedRun, number: int) -> None:
    healthy_step(run, number)
    run.sync()
    run.host(20_000)


def frees_and_allocations(run: ScriptedRun, number: int) -> None:
    healthy_step(run, number)
    run.sync()
    for _ in range(6):
        run.call("cudaFree", 700)
        run.call("cudaMalloc", 600)


def chains_of_elementwise(run: ScriptedRun, number: int) -> None:
    for _ in range(8):
        run.op("aten::mm", ("nvjet_sm90_tst_256x128", 300.0))
        for name in ("mul", "sin", "add", "cos", "mul", "tanh"):
            run.op(f"aten::{name}", (f"vectorized_elementwise_kernel<{name}>", 120.0))
    run.optimizer()


def scores_in_memory(run: ScriptedRun, number: int) -> None:
    for _ in range(8):
        run.op("aten::mm", ("nvjet_sm90_tst_256x128", 300.0))
        run.op("aten::bmm", ("nvjet_sm90_tst_128x128", 60.0))
        run.op("aten::div", ("vectorized_elementwise_kernel<div>", 150.0))
        run.op("aten::masked_fill_", ("elementwise_kernel<masked_fill>", 150.0))
        run.op("aten::_softmax", ("cunn_SoftMaxForward", 180.0))
        run.op("aten::bmm", ("nvjet_sm90_tst_128x128", 60.0))
    run.optimizer()


def optimizer_tensor_by_tensor(run: ScriptedRun, number: int) -> None:
    run.layers(8)
    with run.span("Optimizer.step#Adam.step"):
        for _ in range(120):
            for name in ("mul_", "addcmul_", "sqrt", "addcdiv_"):
                run.op(f"aten::{name}", (f"vectorized_elementwise_kernel<{name}>", 30.0), host_us=8)


def save_now_and_then(run: ScriptedRun, number: int) -> None:
    healthy_step(run, number)
    if number == 3:
        for _ in range(40):
            run.copy("DtoH (Device -> Pageable)", 20e6, 2_000, blocking=True)
        run.host(300_000)


def transposes_everywhere(run: ScriptedRun, number: int) -> None:
    for _ in range(8):
        run.op("aten::mm", ("nvjet_sm90_tst_256x128", 300.0))
        for _ in range(2):
            with run.span("aten::contiguous", "cpu_op"), run.span("aten::clone", "cpu_op"):
                run.op("aten::copy_", ("elementwise_kernel<direct_copy_kernel_cuda>", 140.0))
        run.op("aten::add", ("vectorized_elementwise_kernel<add>", 20.0))
    run.optimizer()


def evaluation_in_the_step(run: ScriptedRun, number: int) -> None:
    healthy_step(run, number)
    with run.span("validation"):
        for _ in range(8):
            with run.span("aten::linear", "cpu_op"):
                run.op("aten::mm", ("nvjet_sm90_tst_256x128_64x4", 400.0))


def forward_repeated_in_backward(run: ScriptedRun, number: int) -> None:
    run.layers(8)
    with run.backward():
        for _ in range(8):
            with run.span("autograd::engine::evaluate_function: MulBackward0", "cpu_op"):
                with run.span("aten::linear", "cpu_op"):
                    run.op("aten::mm", ("nvjet_sm90_tst_256x128_64x4", 400.0))
                run.op("aten::gelu", ("vectorized_elementwise_kernel<gelu>", 20.0))
    run.optimizer()


def plans_for_new_shapes(run: ScriptedRun, number: int) -> None:
    run.op("aten::_cudnn_attention_forward", ("cudnn_flash_fprop", 300.0), host_us=30_000)
    healthy_step(run, number)


def products_on_cuda_cores(run: ScriptedRun, number: int) -> None:
    for _ in range(20):
        run.op("aten::addmm", ("ampere_sgemm_128x64_tn", 900.0))
    run.optimizer()


def tf32_products(run: ScriptedRun, number: int) -> None:
    for _ in range(20):
        run.op("aten::addmm", ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", 900.0))
    run.optimizer()


def odd_dimensions(run: ScriptedRun, number: int) -> None:
    for _ in range(20):
        run.op("aten::mm", ("cutlass_80_tensorop_f16_s16816gemm_f16_256x128_32x3_nn_align2", 900.0))
    run.optimizer()


def results_fetched_each_step(run: ScriptedRun, number: int) -> None:
    healthy_step(run, number)
    run.copy("DtoH (Device -> Pageable)", 60e6, 5_000, blocking=True)


def unnamed_second_forward(run: ScriptedRun, number: int) -> None:
    healthy_step(run, number)
    if number % 2:
        for _ in range(8):
            with run.span("aten::linear", "cpu_op"):
                run.op("aten::mm", ("nvjet_sm90_tst_256x128_64x4", 400.0))


def cache_emptied_each_step(run: ScriptedRun, number: int) -> None:
    """Frees wait for the queue, so the host also loses its lead and allocates again while launching."""
    for layer in range(40):
        run.op("aten::mm", ("nvjet_sm90_tst_128x128", 100.0), host_us=60)
        if layer % 8 == 0:
            run.call("cudaMalloc", 500)
    run.sync("cudaFree")
    for _ in range(5):
        run.call("cudaFree", 400)


def double_precision(run: ScriptedRun, number: int) -> None:
    for _ in range(10):
        run.op("aten::mm", ("void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1>", 900.0))
    run.layers(2)


def tokens_one_by_one(run: ScriptedRun, number: int) -> None:
    """Decoding with one row: each kernel reads a weight matrix; launches keep up."""
    for _ in range(40):
        run.op("aten::mm", ("void gemv2T_kernel_val<int, int, __nv_bfloat16>", 60.0), host_us=4)
        run.op("aten::add", ("vectorized_elementwise_kernel<add>", 2.0), host_us=4)


FAULTS = {
    results_fetched_each_step: {"host-sync"},
    unnamed_second_forward: {"eval-in-loop"},
    cache_emptied_each_step: {"allocator-churn"},
    double_precision: {"fp64-in-hot-path"},
    tokens_one_by_one: {"decode-bandwidth-bound"},
    loader_in_main_process: {"input-starved"},
    late_batch_now_and_then: {"input-bursty"},
    pageable_input: {"h2d-copy-exposed"},
    states_on_the_host: {"cpu-offload-transfers"},
    value_read_after_each_layer: {"host-sync"},
    short_kernels: {"launch-bound"},
    collector_frame: {"python-gc-pauses"},
    unnamed_pause: {"host-work-unattributed"},
    frees_and_allocations: {"allocator-churn"},
    chains_of_elementwise: {"elementwise-unfused"},
    scores_in_memory: {"attention-materialized"},
    optimizer_tensor_by_tensor: {"optimizer-unfused"},
    save_now_and_then: {"checkpoint-stall"},
    transposes_everywhere: {"layout-copies"},
    evaluation_in_the_step: {"eval-in-loop"},
    forward_repeated_in_backward: {"recompute-unneeded"},
    plans_for_new_shapes: {"recompilation"},
    products_on_cuda_cores: {"tensor-cores-unused"},
    tf32_products: {"precision-headroom"},
    odd_dimensions: {"misaligned-shapes"},
}


@pytest.mark.parametrize("body", FAULTS, ids=lambda f: f.__name__)
def test_a_planted_fault_is_the_first_answer(body: Callable[[ScriptedRun, int], None], tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, body)
    assert diagnosis.ranked[0] in FAULTS[body], diagnosis.ranked


def test_the_same_run_without_a_fault_is_healthy(tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, healthy_step)
    assert diagnosis.state is not State.SICK, [(f.cause, f.headline) for f in diagnosis.findings]


@pytest.mark.parametrize("body", FAULTS, ids=lambda f: f.__name__)
def test_gains_never_exceed_the_step(body: Callable[[ScriptedRun, int], None], tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, body, steps=3)
    assert diagnosis.ledger is not None
    # Of a replay what is likely: its high end is what it may win alone, on a day when the host is slow.
    gains = [f.gain for f in diagnosis.findings if f.gain and f.category]
    claimed = sum(g.high_s if g.likely_s is None else min(g.likely_s, g.high_s) for g in gains)
    assert all(g.high_s <= diagnosis.ledger.whole_s for g in gains)
    assert claimed <= diagnosis.ledger.whole_s * 1.001
