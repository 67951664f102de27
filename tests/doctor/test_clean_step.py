"""The step without its profiler, against steps that were measured without one."""

from __future__ import annotations

import csv
import json

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.gather import gather
from stallwise.evidence.catalog import step
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.ledger import Category
from tests.shared_data import shared

TRACES = ("gpt_small.cpu_cuda", "gpt_small.shapes", "lstm_cells.cpu_cuda", "lstm_cells.shapes")


def measured(name: str) -> tuple[float, float]:
    """The clean steps before and after the traced one."""
    workload, options = name.split(".")
    table = shared("data", "h200", "profiler_cost", "profiler_overhead.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(table.splitlines()):
        if row["workload"] == workload and row["options"] == options.replace("_", "+"):
            return float(row["clean_before_ms"]) * 1e-3, float(row["clean_after_ms"]) * 1e-3
    raise AssertionError(name)


def seen(*parts: str) -> Evidence:
    return gather([str(shared("data", "h200", *parts))], cache=False)


@pytest.mark.parametrize("name", TRACES)
def test_the_clean_step_is_found_from_the_trace_alone(name: str) -> None:
    evidence = seen("profiler_cost", f"{name}.json.gz")
    clean = sum(measured(name)) / 2
    replayed = evidence.get(step.REPLAYED_STEP)
    assert replayed is not None and replayed.low is not None and replayed.high is not None
    assert abs(replayed.number / clean - 1) < 0.1
    assert replayed.low <= max(measured(name)) and replayed.high >= min(measured(name))
    assert evidence.value(step.TRACED_STEP) > 1.3 * clean
    ledger = evidence.ledgers[0]
    assert ledger.clean_step_s == pytest.approx(ledger.whole_s)
    assert ledger.traced_step_s == pytest.approx(evidence.value(step.TRACED_STEP))


@pytest.mark.parametrize("name", TRACES)
def test_what_the_profiler_slowed_is_not_called_launch_bound(name: str) -> None:
    first = diagnose(str(shared("data", "h200", "profiler_cost", f"{name}.json.gz")), cache=False).first
    assert first is not None
    assert (first.cause == "launch-bound") == name.startswith("lstm")


@pytest.mark.parametrize("case", ["healthy", "fp32_no_tf32", "naive_attention", "misaligned", "compiled_healthy"])
def test_a_step_that_the_device_limits_stays(case: str) -> None:
    truth = json.loads(shared("data", "h200", "train", case, "truth.json").read_text(encoding="utf-8"))
    evidence = seen("train", case, "trace.json.gz")
    assert evidence.value(step.STEP_TIME) == pytest.approx(truth["clean_step_ms_median"] * 1e-3, rel=0.03)


def test_untraced_steps_of_the_same_run_decide() -> None:
    diagnosis = diagnose(str(shared("data", "h200", "programs", "nano124_eager", "bundle")), cache=False)
    assert diagnosis.first is not None and diagnosis.first.cause == "elementwise-unfused"
    assert diagnosis.first.gain is not None and diagnosis.first.gain.low_s <= 25e-3 <= diagnosis.first.gain.high_s
    ledger = diagnosis.ledger
    assert ledger is not None and ledger.whole_s == pytest.approx(0.130, rel=0.02)
    assert ledger.seconds[Category.LAUNCH_GAP] < 8e-3


def test_a_rank_among_others_keeps_its_recorded_times() -> None:
    evidence = gather([str(shared("data", "traces", "hta", "a100_2rank_nccl_args_rank0.json.gz"))], cache=False)
    assert not evidence.all(step.REPLAYED_STEP)
