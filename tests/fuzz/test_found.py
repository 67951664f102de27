"""Inputs that broke a reader, a measure or a command once: each is read now, or refused in a sentence."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.errors import StallwiseError
from stallwise.readers._cells import number_of, whole_of
from stallwise.readers.shapes import document
from stallwise.surfaces.cli import main

FOUND = sorted(p for p in (Path(__file__).parent / "seeds").rglob("*") if p.is_file())


@pytest.mark.parametrize("path", FOUND if os.environ.get("STALLWISE_FULL") else FOUND[::2], ids=lambda p: p.name)
def test_what_broke_once_breaks_no_more(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALLWISE_DEBUG", "1")  # a failure that would be contained comes through
    try:
        diagnose(str(path), cache=False, workers=1)
    except StallwiseError as error:
        assert error.problem and error.hint


@pytest.mark.parametrize(
    ("value", "number", "whole"),
    [
        ("12", 12.0, 12), (7, 7.0, 7), (2.5, 2.5, 2), ("1.2.3", None, None), ("nan", None, None), (True, None, None),
        (10**400, None, None), ("inf", float("inf"), None), ("9" * 23, 1e23, None), (None, None, None), ([1], None, None),
        ("²", None, None),
    ],
)  # fmt: skip
def test_a_value_is_a_number_or_none(value: object, number: float | None, whole: int | None) -> None:
    assert (number_of(value), whole_of(value)) == (number, whole)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("plan cost --model llama-3.2-3b --mtbf 3.5", "nothing gets done"),
        ("plan load --model qwen2.5-1.5b --gpu l40s --engine 1 --rate 2", "no engine is called '1'"),
        ("plan load --model gpt2-xl --shared -1", "a shared prefix"),
        ("plan load --model gpt2-xl --burst 1e29", "a variation from 0 to 1000"),
        ("plan pipeline --head-layers 1e999", "is no number to reckon with"),
        ("plan load --model gpt2-xl --spread nan", "is no number to reckon with"),
        (
            "plan pipeline --microbatches 2048 --layers 0 --head-layers 1e308 --weight-grad 2 --recompute",
            "is no number to reckon with",
        ),
        (
            "plan train --model olmo-2-13b --cluster 8xa40 --global-batch 7 --schedule v-half --tokens 512",
            "v-half",
        ),
        ("plan load --model gpt-neox-20b --users 2 --isl -1 --spread 4", "at least one token"),
        ("plan serve --model deepseek-v3 --isl 1e308 --ttft 16", "is no number to reckon with"),
        ("history --clear --json", '{"forgotten": 0}'),
    ],
)
def test_a_command_that_broke_once_answers_in_a_sentence(line: str, says: str) -> None:
    ran = CliRunner().invoke(main, line.split())
    told = ran.exception.problem if isinstance(ran.exception, StallwiseError) else ran.output
    assert says in told


def test_a_file_cut_at_its_head_keeps_its_sections_apart(tmp_path: Path) -> None:
    cut = tmp_path / "x.json"
    cut.write_text('h"\nloss_normal = true\nchanged = "nothing"\n\n[before]\nmfu = "48%"\n')
    found = diagnose(str(cut), cache=False)
    assert found.state is not State.HEALTHY  # what was once is no all-clear for today


def test_a_yardstick_beyond_the_possible_proves_nothing() -> None:
    (log,) = (p for p in FOUND if p.name == "2fe42-train.log")  # MFU reckoned against the peak of another card: 101%
    assert diagnose(str(log), cache=False).state is not State.HEALTHY


def test_a_kernel_whose_counters_moved_by_a_cell_forbids_an_all_clear() -> None:
    (table,) = (p for p in FOUND if p.name == "2fe42-details.csv")  # the other kernel is at its roof
    found = diagnose(str(table), cache=False)
    assert found.state is State.UNCLEAR and any("no counter of" in n.text for n in found.notes)


def test_a_cell_without_end_costs_its_own_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALLWISE_DEBUG", "1")
    heads = {
        "smi.csv": "timestamp, index, utilization.gpu [%], power.draw [W]\n2026/11/15 01:06:12.746, 0, 98 %, 396.04 W\n",
        "scaling.csv": "gpus,step_time_ms\n8,100\n16,110\n",
        "kern_sum.csv": "Time (%),Total Time (ns),Instances,Avg (ns),Name\n99.0,1000,10,100,k\n",
        "layers.csv": "layer,amax,std\nblocks.0,1.5,0.2\n",
        "locust_stats.csv": "Type,Name,Request Count,Failure Count,Median Response Time,Requests/s\n,Aggregated,10,0,20,3\n",
    }
    for name, text in heads.items():
        (tmp_path / name).write_text(text + "9" * 140_000 + ",1,2,3,4,5\n")
        with contextlib.suppress(StallwiseError):
            diagnose(str(tmp_path / name), cache=False, workers=1)


GROWS = {  # lines that look like a table and are none, as often as a page may hold them
    "gaps": "  Warning  FailedStart  kubelet  device error: unknown device id: GPU-61c1bd0f\n",
    "bars": "| one |\n| two | three |\n",
    "pairs": "step_time: 12 ms, loss = 3.1\n",
    "words": "the step takes 12 ms and the loader 3 ms of it\n",
}


@pytest.mark.parametrize("kind", GROWS)
def test_twice_the_lines_are_twice_the_work(kind: str) -> None:
    def work(lines: int) -> int:
        """Calls of functions, which no crowd changes."""
        calls = 0

        def called(frame: object, event: str, _: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        text = GROWS[kind] * lines
        before = sys.getprofile()
        sys.setprofile(called)
        try:
            sum(1 for _ in document.read(text))
        finally:
            sys.setprofile(before)
        return calls

    assert work(160) < 2.2 * work(80)


def test_a_sentence_without_end_costs_little(tmp_path: Path) -> None:
    page = tmp_path / "note.txt"
    page.write_text("the step takes " + " and then ".join(f"{n} ms" for n in range(900)) + " in all\n")
    began = time.process_time()
    diagnose(str(page), cache=False)
    assert time.process_time() - began < 4.0  # seconds: it took a minute, growing with the square


def test_json_is_alone_on_its_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    (tmp_path / "run.log").write_text(
        "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.\n"
    )
    ran = CliRunner().invoke(main, ["diagnose", str(tmp_path / "run.log"), "--json", "--github", "--no-cache"])
    assert json.loads(ran.stdout)["findings"] and "::" in ran.stderr
    assert json.loads(CliRunner().invoke(main, ["facts", "--template", "--json"]).stdout)["gpus"] == 8
    assert json.loads(CliRunner().invoke(main, ["check", "--example", "--json"]).stdout)


@pytest.mark.parametrize("words", [["cost", "--model", "llama-3.1-70b", "--free", "²"], ["pipeline", "--layers", "²"]])
def test_digits_that_are_no_numbers_are_refused(words: list[str]) -> None:
    answer = CliRunner().invoke(main, ["plan", *words])
    assert isinstance(answer.exception, (StallwiseError, SystemExit)), answer.output


def test_rows_above_their_header_are_lost_and_forbid_health() -> None:
    page = Path(__file__).parent / "seeds" / "found" / "above-details.csv"
    assert diagnose(str(page), cache=False).state is not State.HEALTHY
