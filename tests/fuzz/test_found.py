"""Inputs that broke a reader, a measure or a command once: each is read now, or refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from stallwise.cli import main
from stallwise.doctor.examine import diagnose
from stallwise.errors import StallwiseError
from stallwise.readers._cells import number_of, whole_of

FOUND = sorted(p for p in (Path(__file__).parent / "seeds").rglob("*") if p.is_file())


@pytest.mark.parametrize("path", FOUND, ids=lambda p: p.name)
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


def test_a_fleet_that_fails_before_it_starts_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = CliRunner().invoke(main, ["plan", "cost", "--model", "llama-3.2-3b", "--mtbf", "3.5"])
    assert isinstance(ran.exception, StallwiseError) and "nothing gets done" in ran.exception.problem


def test_json_is_alone_on_its_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    (tmp_path / "run.log").write_text(
        "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.\n"
    )
    ran = CliRunner().invoke(main, ["diagnose", str(tmp_path / "run.log"), "--json", "--github", "--no-cache"])
    assert json.loads(ran.stdout)["findings"] and "::" in ran.stderr
    assert json.loads(CliRunner().invoke(main, ["facts", "--template", "--json"]).stdout)["gpus"] == 8
