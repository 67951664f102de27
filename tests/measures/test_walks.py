"""Loops that update tensors one by one beside the optimizer are told from loops over time and over layers, and from saves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis
from stallwise.evidence.catalog import gains
from stallwise.evidence.catalog import step as catalog
from tests.measures.scripted_run import ScriptedRun

TENSORS = 150


def small(run: ScriptedRun, *names: str) -> None:
    for name in names:
        run.op(f"aten::{name}", (f"vectorized_elementwise_kernel<{name}>", 2.0), host_us=9)


def running_average(run: ScriptedRun) -> None:
    for _ in range(TENSORS):
        small(run, "mul_", "add_")


def target_network(run: ScriptedRun) -> None:
    for _ in range(TENSORS):
        small(run, "mul", "mul", "add", "copy_")


def noise_of_the_next_step(run: ScriptedRun) -> None:
    running_average(run)
    small(run, "rand", "rsub", "sin", "cos", "div", "exp", "sqrt", "neg", "zeros")


def over_time(run: ScriptedRun) -> None:
    for _ in range(TENSORS):
        small(run, "mul", "add", "tanh")


def over_layers(run: ScriptedRun) -> None:
    for _ in range(TENSORS):
        run.op("aten::mm", ("nvjet_sm90_tst_64x64", 3.0), host_us=9)
        small(run, "add_", "relu_")


def saved(run: ScriptedRun) -> None:
    for _ in range(TENSORS):
        run.copy("DtoH (Device -> Pageable)", 1e6, 5.0, blocking=True)


def few(run: ScriptedRun) -> None:
    for _ in range(20):
        small(run, "mul_", "add_")


def diagnosed(place: Path, loop: Callable[[ScriptedRun], None]) -> Diagnosis:
    run = ScriptedRun()
    for _ in range(4):
        with run.step():
            run.layers(6)
            run.optimizer()
            run.sync()  # the device waits for what the host does next
            loop(run)
    return diagnose(run.write(place), cache=False)


@pytest.mark.parametrize("loop", [running_average, target_network, noise_of_the_next_step])
def test_updates_tensor_by_tensor_are_found_and_priced(loop: Callable[[ScriptedRun], None], tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, loop)
    assert diagnosis.evidence.value(catalog.WALKED_KERNELS) >= 2 * TENSORS - 1
    finding = next(f for f in diagnosis.findings if f.cause == "optimizer-unfused")
    assert finding.gain is not None and "beside the optimizer" in finding.headline
    assert finding.gain.likely_s == pytest.approx(diagnosis.evidence.value(gains.FUSED_OPTIMIZER))
    span_s = diagnosis.evidence.value(catalog.WALKED_SPAN)
    assert 0.5 * span_s < finding.gain.likely_s <= finding.gain.high_s < span_s


@pytest.mark.parametrize("loop", [over_time, over_layers, saved, few])
def test_other_loops_are_not(loop: Callable[[ScriptedRun], None], tmp_path: Path) -> None:
    diagnosis = diagnosed(tmp_path, loop)
    assert not diagnosis.evidence.all(catalog.WALKED_KERNELS)
    assert "optimizer-unfused" not in diagnosis.ranked
