"""Eight stated scenarios: the right class first, fixes in order of impact, the tempting first move named, numbers aloud."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis, State

SCENARIOS = Path(__file__).parents[2] / "examples" / "scenarios"


@dataclass(frozen=True)
class Target:
    cause: str
    fixes: tuple[str, ...]  # a word of each fix, in order
    avoid: str
    numbers: tuple[str, ...]  # arithmetic that must be said aloud
    rival: str  # what takes over when the contrary artifact comes; "" where nothing named does


TARGETS = {
    "01_slow_gemm_kernel": Target(
        "tensor-cores-starved",
        ("wgmma", "asynchronous copy", "register", "Swizzle"),
        "occupancy",
        ("134", "989", "180"),
        "",
    ),
    "02_mfu_collapse": Target(
        "straggler-rank",
        ("per-rank", "throttle reasons", "Drain", "Watch"),
        "sharding",
        ("2.18x", "277"),
        "",
    ),
    "03_serving_collapse": Target(
        "prefill-decode-contention",
        ("Separate prefill", "KV budget", "chunked prefill", "FP8 KV"),
        "Adding GPUs",
        ("45 ms", "328 kB", "548 GB"),
        "kv-cache-preemption",
    ),
    "04_fp8_long_context": Target(
        "fp8-saturation",
        ("Recalibrate", "per block", "attention", "sensitivity"),
        "calibration set",
        ("448", "32,768"),
        "",
    ),
    "05_oom_smaller_tp": Target(
        "oom-sharding-peak",
        ("Sequence parallelism", "FlashAttention", "micro-batch", "Tensor parallelism back to 8"),
        "activation checkpointing",
        ("TP x DP is 512", "12.7 GB -> 12.7 GB", "1.59 GB -> 3.19 GB", "= 77.3 GB", "of 85.9 GB"),
        "oom-optimizer-state",
    ),
    "06_allreduce_cliff": Target(
        "collective-topology-cliff",
        ("hierarchical", "binary trees", "Overlap", "accumulation"),
        "ZeRO or FSDP",
        ("2(N-1)/N", "0.2% more", "340 ms", "1/7.5"),
        "straggler-rank",
    ),
    "07_triton_slower": Target(
        "autotune-space-too-small",
        ("Widen", "SASS", "fusion can pay", "epilogue"),
        "Blaming Triton",
        ("2 of about 108",),
        "",
    ),
    "08_pipeline_bubble": Target(
        "pipeline-stage-imbalance",
        ("Rebalance", "virtual stages", "micro-batches", "zero-bubble"),
        "formula at face value",
        ("18%", "9.9%", "1.53x", "1.28x"),
        "pipeline-p2p-latency",
    ),
}


# The complaint is worded as such troubles usually are, which counts for more than two clues against it; both are shown.
WORDS_OUTWEIGH = ("03_serving_collapse",)


@cache
def told(scenario: str, *extra: str) -> Diagnosis:
    """The diagnosis of a case and what is added to it."""
    folder = SCENARIOS / scenario
    return diagnose(*(str(folder / f"{name}.toml") for name in ("case", *extra)))


def probability(diagnosis: Diagnosis, cause: str) -> float:
    return next((h.probability for h in diagnosis.hypotheses if h.cause == cause), 0.0)


def test_every_scenario_has_its_three_files() -> None:
    for name in TARGETS:
        assert {p.name for p in (SCENARIOS / name).iterdir()} >= {"case.toml", "deciding.toml", "contrary.toml"}


@pytest.mark.parametrize("name", TARGETS)
def test_the_right_class_comes_first(name: str) -> None:
    diagnosis = told(name)
    assert diagnosis.ranked[0] == TARGETS[name].cause
    assert not diagnosis.healthy
    assert diagnosis.notes == ()  # every word of the case file is known


@pytest.mark.parametrize("name", TARGETS)
def test_fixes_come_in_the_target_order_with_cost_risk_and_worth(name: str) -> None:
    first = told(name).first
    assert first is not None and first.cause == TARGETS[name].cause
    actions = [fix.action for fix in first.fixes]
    assert len(actions) == len(TARGETS[name].fixes)
    for action, word in zip(actions, TARGETS[name].fixes, strict=True):
        assert word.lower() in action.lower(), (action, word)
    assert all((fix.gain or fix.worth) and fix.cost and fix.risk for fix in first.fixes)


@pytest.mark.parametrize("name", TARGETS)
def test_the_tempting_first_move_is_named(name: str) -> None:
    first = told(name).first
    assert first is not None and TARGETS[name].avoid in first.avoid


@pytest.mark.parametrize("name", TARGETS)
def test_two_artifacts_are_asked_for_with_commands(name: str) -> None:
    asked = told(name).next
    assert len({step.capture.artifact for step in asked}) >= 2
    assert all(step.capture.command for step in asked)


@pytest.mark.parametrize("name", TARGETS)
def test_the_arithmetic_is_said_aloud(name: str) -> None:
    diagnosis = told(name)
    first = diagnosis.first
    assert first is not None
    words = [r.text for r in (*first.because, *diagnosis.contradictions)]
    words += [f"{fix.action} {fix.worth}" for fix in first.fixes]
    for number in TARGETS[name].numbers:
        assert number in " ".join([*words, first.summary]), number


@pytest.mark.parametrize("name", TARGETS)
def test_the_deciding_artifact_settles_it(name: str) -> None:
    diagnosis = told(name, "deciding")
    assert diagnosis.ranked[0] == TARGETS[name].cause
    assert probability(diagnosis, TARGETS[name].cause) >= 0.7
    assert diagnosis.state is State.SICK


@pytest.mark.parametrize("name", TARGETS)
def test_the_contrary_artifact_drops_it(name: str) -> None:
    target = TARGETS[name]
    diagnosis = told(name, "contrary")
    if name in WORDS_OUTWEIGH:
        assert target.rival in diagnosis.ranked[:2] and diagnosis.findings[0].against
        return
    assert probability(diagnosis, target.cause) < 0.5 * probability(told(name), target.cause)
    if target.rival:
        assert diagnosis.ranked[0] == target.rival


@pytest.mark.parametrize("name", TARGETS)
def test_probabilities_sum_to_one_with_something_else(name: str) -> None:
    for extra in ((), ("deciding",), ("contrary",)):
        hypotheses = told(name, *extra).hypotheses
        assert abs(sum(h.probability for h in hypotheses) - 1.0) < 1e-9
        assert "something-else" in {h.cause for h in hypotheses}


def test_the_cuda_core_ceiling_and_the_register_limit_are_contradictions() -> None:
    text = " ".join(r.text for r in told("01_slow_gemm_kernel").contradictions)
    assert "134 TFLOP/s" in text  # 180 TFLOP/s cannot come from CUDA cores alone
    assert "12.5%" in text  # 168 registers x 256 threads cannot reach 38% occupancy


def test_the_bubble_formula_is_corrected() -> None:
    text = " ".join(r.text for r in told("08_pipeline_bubble").findings[0].because)
    assert "18% of the step" in text and "9.9%" in text  # (p-1)/(m+p-1), and interleaved


def test_optimizer_shards_are_not_blamed_when_tp_times_dp_is_constant() -> None:
    first = told("05_oom_smaller_tp").first
    assert first is not None
    assert any("optimizer shards do not change" in r.text for r in first.because)
