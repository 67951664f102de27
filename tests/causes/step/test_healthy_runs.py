"""Runs that look suspicious and are not: each has one feature that a naive reading would blame."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from tests.measures.scripted_run import ScriptedRun


def loss_read_at_the_end(run: ScriptedRun) -> None:
    """The host waits for the whole step, yet the device idles only for the first launch of the next."""
    run.layers(12)
    run.optimizer()
    run.op("aten::_local_scalar_dense")
    run.sync()


def slow_loader_behind_kernels(run: ScriptedRun) -> None:
    """The loader holds the host 8 ms in a step of 15; the queue is long enough."""
    with run.span("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"):
        run.host(8_000)
    run.layers(12)
    run.optimizer()


def compiled_model(run: ScriptedRun) -> None:
    """Fused kernels between products are the healthy state of pointwise work."""
    with run.span("Torch-Compiled Region: 0/0", "cpu_op"):
        for _ in range(16):
            run.op("aten::mm", ("nvjet_sm90_tst_256x128", 400.0))
            run.op("triton_poi_fused_add_mul_silu_1", ("triton_poi_fused_add_mul_silu_1", 90.0))
    run.optimizer()


def convolutions(run: ScriptedRun) -> None:
    """A convolution net in 16 bits and channels_last."""
    for _ in range(20):
        with run.span("aten::conv2d", "cpu_op"), run.span("aten::convolution", "cpu_op"):
            kernel = "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc"
            run.op("aten::cudnn_convolution", (kernel, 500.0))
        run.op("aten::cudnn_batch_norm", ("bn_fw_tr_1C11_kernel_NCHW", 40.0))
    run.optimizer()


def fused_attention(run: ScriptedRun) -> None:
    """An encoder with fused attention and a softmax over classes."""
    for _ in range(12):
        run.op("aten::addmm", ("nvjet_sm90_tst_256x128", 500.0))
        with run.span("aten::scaled_dot_product_attention", "cpu_op"):
            run.op("aten::_flash_attention_forward", ("pytorch_flash::flash_fwd_kernel", 200.0))
    run.op("aten::_softmax", ("softmax_warp_forward", 3.0))
    run.optimizer()


def routed_experts(run: ScriptedRun) -> None:
    """The router's softmax stands between batched products of experts and is no attention."""
    for _ in range(10):
        run.op("aten::bmm", ("nvjet_sm90_tst_128x256", 500.0))
        run.op("aten::addmm", ("nvjet_sm90_tst_64x64", 20.0))
        run.op("aten::_softmax", ("softmax_warp_forward", 5.0))
        run.op("aten::topk", ("gatherTopK", 10.0))
        run.op("aten::bmm", ("nvjet_sm90_tst_128x256", 500.0))
    run.optimizer()


def accumulated_passes(run: ScriptedRun) -> None:
    """Four long passes a step keep the device busy: nothing to merge."""
    for _ in range(4):
        run.layers(4)
    run.optimizer()


def inputs_copied_ahead(run: ScriptedRun) -> None:
    """A pinned copy in the queue between kernels, small against the step."""
    run.copy("HtoD (Pinned -> Device)", 8e6, 150)
    run.layers(12)
    run.optimizer()


HEALTHY = (
    loss_read_at_the_end,
    slow_loader_behind_kernels,
    compiled_model,
    convolutions,
    fused_attention,
    routed_experts,
    accumulated_passes,
    inputs_copied_ahead,
)


@pytest.mark.parametrize("body", HEALTHY, ids=lambda f: f.__name__)
def test_a_run_that_only_looks_bad_is_healthy(body: Callable[[ScriptedRun], None], tmp_path: Path) -> None:
    run = ScriptedRun()
    for _ in range(5):
        with run.step():
            body(run)
    diagnosis = diagnose(run.write(tmp_path), cache=False)
    assert diagnosis.state is not State.SICK, [(f.cause, f.confidence, f.headline) for f in diagnosis.findings]


def slowed_by_the_profiler() -> ScriptedRun:
    """The host needs 1.2 times the device's time while traced; the profiler's usual factor is larger than that."""
    run = ScriptedRun()
    for _ in range(4):
        with run.step():
            for _ in range(200):
                run.op("aten::mm", ("nvjet_sm90_tst_128x128", 50.0), host_us=56.0)
    return run


def test_idle_time_that_the_profiler_explains_is_not_called_launch_bound(tmp_path: Path) -> None:
    diagnosis = diagnose(slowed_by_the_profiler().write(tmp_path), cache=False)
    assert diagnosis.state is not State.SICK


def test_a_clean_step_that_is_as_slow_confirms_the_launches(tmp_path: Path) -> None:
    trace = slowed_by_the_profiler().write(tmp_path)
    diagnosis = diagnose(trace, facts=["step.clean_time=12ms"], cache=False)
    assert diagnosis.ranked[0] == "launch-bound"


def test_a_clean_step_shortens_the_ledger_to_itself(tmp_path: Path) -> None:
    trace = slowed_by_the_profiler().write(tmp_path)
    diagnosis = diagnose(trace, facts=["step.clean_time=10.3ms"], cache=False)
    assert diagnosis.ledger is not None
    assert diagnosis.ledger.whole_s == pytest.approx(10.3e-3, rel=0.01)
    assert "profiler-inflated" in diagnosis.ranked
