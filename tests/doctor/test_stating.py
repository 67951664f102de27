"""Facts as people type them, on the command line and in case files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.doctor.findings.symptom import Symptom
from stallwise.doctor.stating import state
from stallwise.doctor.symptoms import complaints
from stallwise.errors import BadRequest
from stallwise.evidence.catalog import quantities, run, serving, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.vocabulary import find, resolve, value_of
from stallwise.surfaces.cli import main


def stating(*words: str) -> Evidence:
    evidence = Evidence()
    state(evidence, words)
    return evidence


def test_units_percent_and_before() -> None:
    evidence = stating(
        "mfu=22", "mfu.before=0.48", "step_time=58ms", "gpus=512", "parameters=70B", "chunked_prefill=no"
    )
    assert evidence.value(run.MFU, run=None) == pytest.approx(0.22)
    assert evidence.value(run.MFU, run="before") == pytest.approx(0.48)
    assert evidence.value(run.STEP_TIME) == pytest.approx(0.058)
    assert evidence.value(stated.PARAMETERS) == 70e9
    assert evidence.value(serving.CHUNKED_PREFILL) == 0.0
    assert all(f.stated for facts in evidence.facts.values() for f in facts)


def test_scaling_tables() -> None:
    evidence = stating("allreduce_time@512=340ms", "allreduce_time@64=45ms")
    (series,) = evidence.series(stated.ALLREDUCE_TIME)
    assert list(series.x) == [64, 512] and series.values[1] == pytest.approx(0.34)


@pytest.mark.parametrize(("word", "hint"), [("mfuu=1", "mfu"), ("stepp_time=1", "step_time"), ("gpuss=1", "gpus")])
def test_unknown_words_get_a_suggestion(word: str, hint: str) -> None:
    with pytest.raises(BadRequest) as error:
        stating(word)
    assert hint in error.value.hint


@pytest.mark.parametrize("word", ["mfu", "=3", "mfu=", "step_time=soon", "loss_normal=maybe"])
def test_nonsense_is_refused_with_an_example(word: str) -> None:
    with pytest.raises(BadRequest) as error:
        stating(word)
    assert error.value.hint


def test_every_quantity_can_be_found_by_its_name() -> None:
    assert all(find(name) is quantity for name, quantity in quantities().items())
    assert resolve("grad-norm")[0] is run.GRAD_NORM
    assert value_of(stated.FLASH_ATTENTION, True) == 1.0


@pytest.mark.parametrize(
    ("words", "symptom"),
    [
        (("mfu=22%", "mfu.before=48%"), Symptom.SUDDEN_SLOWDOWN),
        (("step_time=2s", "step_time.before=1s"), Symptom.SUDDEN_SLOWDOWN),
        (("qps=16", "qps.before=4", "ttft=4s", "ttft.before=120ms"), Symptom.SERVING_COLLAPSE),
        (("accuracy=54%", "accuracy.before=71%"), Symptom.ACCURACY_DROP),
        (("custom_speedup=0.7",), Symptom.CUSTOM_KERNEL_SLOWER),
        (("bubble=41%", "bubble_expected=22%"), Symptom.PIPELINE_IDLE),
        (("gpu_util=35%",), Symptom.LOW_GPU_UTILISATION),
        (("symptom=it hangs after step 40",), Symptom.HANG),
        (("symptom=CUDA out of memory",), Symptom.OUT_OF_MEMORY),
        (("symptom=loss is NaN",), Symptom.BAD_LOSS),
        (("symptom=SLOW_SCALING",), Symptom.SLOW_SCALING),
        (("symptom=throughput fell after an hour",), Symptom.SUDDEN_SLOWDOWN),
    ],
)
def test_complaints_are_heard(words: tuple[str, ...], symptom: Symptom) -> None:
    assert complaints(stating(*words))[0].symptom is symptom


@pytest.mark.parametrize("words", [("mfu=47%", "mfu.before=48%"), ("gpu=h100", "gpus=8"), ("gpu_util=97%",)])
def test_no_complaint_where_nothing_is_wrong(words: tuple[str, ...]) -> None:
    assert complaints(stating(*words)) == []
    answer = diagnose(facts=words)
    assert answer.state is not State.SICK
    # A stated MFU has a yardstick in published runs; a name or a utilisation proves nothing about a run.
    assert answer.healthy is ("mfu=47%" in words)


def test_bare_words_follow_one_fact_option() -> None:
    runner = CliRunner()
    arguments = ["diagnose", "--fact", "mfu=0.22", "mfu.before=0.48", "gpu=h100", "gpus=512", "--json"]
    answer = json.loads(runner.invoke(main, arguments).output)
    assert answer["inputs"] == ["stated facts"]
    assert answer["hypotheses"] and answer["tree"]
    assert abs(sum(h["probability"] for h in answer["hypotheses"]) - 1.0) < 1e-9


def test_a_case_file_keeps_what_it_knows_and_notes_what_it_does_not(tmp_path: Path) -> None:
    case = tmp_path / "case.toml"
    case.write_text('mfu = "22%"\ngpus = 512\ntp = 8\nmfo = 3\n[before]\nmfu = "48%"\n', encoding="utf-8")
    diagnosis = diagnose(str(case))
    assert any("did you mean" in n.text for n in diagnosis.notes)
    assert diagnosis.evidence.value(run.MFU, run="before") == pytest.approx(0.48)


def test_a_pasted_kernel_summary_is_evidence(tmp_path: Path) -> None:
    text = "SM Busy: 94%Tensor Core Utilization: 12%DRAM Throughput: 45% of peakL1/TEX Hit Rate: 62%Register usage: 168"
    (tmp_path / "ncu.txt").write_text(text, encoding="utf-8")
    evidence = diagnose(str(tmp_path / "ncu.txt")).evidence
    assert evidence.value(quantities()["kernel.tensor_pipe_share"]) == pytest.approx(0.12)
    assert evidence.value(quantities()["kernel.registers_per_thread"]) == 168


def test_stated_and_measured_facts_live_together_and_measured_wins(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(
        "".join(f"step: {i} loss: 2.0 mfu: 30.0%\n" for i in range(8)), encoding="utf-8"
    )
    evidence = diagnose(str(tmp_path / "train.log"), facts=["mfu=0.5"]).evidence
    assert evidence.value(run.MFU) == pytest.approx(0.30)
    assert {f.stated for f in evidence.all(run.MFU)} == {True, False}


def test_the_list_of_words() -> None:
    runner = CliRunner()
    assert "mfu" in runner.invoke(main, ["facts", "mfu"]).output
    rows = json.loads(runner.invoke(main, ["facts", "--json"]).output)
    assert {r["name"] for r in rows} == set(quantities())
    assert "symptom" in runner.invoke(main, ["facts", "--template"]).output
    assert "did you mean" in runner.invoke(main, ["facts", "mfuu"]).output
