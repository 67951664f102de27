"""The commands around a diagnosis, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stallwise.causes import all_rules
from stallwise.errors import BadRequest
from stallwise.surfaces.cli import main
from tests.measures.scripted_run import ScriptedRun

MOST_LINES = 25  # of a proved answer
EXAMPLE = Path(__file__).parents[2] / "examples" / "traces" / "loader_slow"


def run(*words: str) -> Result:
    return CliRunner(env={"COLUMNS": "110"}).invoke(main, words, catch_exceptions=False)


def test_the_report_leads_with_the_answer_and_its_price() -> None:
    out = run("diagnose", str(EXAMPLE), "--no-cache").output
    lines = out.splitlines()
    assert lines[0].startswith("FOUND  The GPU waits for input") and "input-starved" in lines[0]
    assert any(line.strip().startswith("Fixing it saves ") for line in lines[:5])
    assert lines[-1].startswith("from   4 steps on NVIDIA H200 · ") and lines[-1].endswith(" · 120 ms a step")
    assert len(lines) <= MOST_LINES
    for label in ("step", "why", "fix", "not", "avoid", "next"):
        assert f"\n{label:7}" in out


def test_no_line_is_wider_than_asked_for() -> None:
    from stallwise.doctor.examine import diagnose
    from stallwise.render.text import to_text

    lines = to_text(diagnose(str(EXAMPLE), cache=False), width=100).splitlines()
    assert max(len(line) for line in lines) <= 100


def test_reports_in_three_formats_say_the_same(tmp_path: Path) -> None:
    for ending in ("md", "json", "txt"):
        run("diagnose", str(EXAMPLE), "-o", str(tmp_path / f"report.{ending}"))
    told = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    headline = told["findings"][0]["headline"]
    assert told["ranked"][0] == "input-starved"
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("# ")
    assert headline in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert headline in (tmp_path / "report.txt").read_text(encoding="utf-8")


def test_a_clean_step_is_heard(tmp_path: Path) -> None:
    scripted = ScriptedRun()
    for _ in range(4):
        with scripted.step():
            for _ in range(200):
                scripted.op("aten::mm", ("gemm", 10.0), host_us=30.0)
    trace = scripted.write(tmp_path)
    told = json.loads(run("diagnose", trace, "--clean-step", "5ms", "--json", "--no-cache").output)
    assert told["ledger"]["whole_s"] == pytest.approx(5e-3, rel=0.01)
    assert told["subject"].endswith("5.00 ms a step (6.80 ms while traced)")
    assert told["ledger"]["step_s"] == told["ledger"]["clean_step_s"] == told["ledger"]["whole_s"]


def test_a_clean_step_without_a_number_is_a_usage_error() -> None:
    with pytest.raises(BadRequest):
        run("diagnose", str(EXAMPLE), "--clean-step", "fast", "--no-cache")


@pytest.mark.parametrize("cause", [rule.cause for rule in all_rules()])
def test_every_cause_can_be_explained(cause: str) -> None:
    out = run("explain", cause).output
    assert out.startswith(cause) and "## Fix" in out


@pytest.mark.parametrize("begin", ["- ", "-- ", "--- ", "-\n"])
def test_a_pasted_message_may_begin_with_a_bullet(begin: str) -> None:
    answer = run(
        "diagnose", f"{begin}the GPU waits for the dataloader, decoding JPEGs takes 80% of the step", "--no-history"
    )
    assert answer.exit_code == 0 and "input-starved" in answer.output


def test_a_misspelt_cause_gets_a_suggestion() -> None:
    with pytest.raises(BadRequest) as error:
        run("explain", "input-starvd")
    assert "input-starved" in error.value.hint


def test_causes_are_listed_by_family() -> None:
    listed = json.loads(run("causes", "--family", "step", "--json").output)
    assert {"cause": "input-starved", "family": "step"}.items() <= listed[
        [r["cause"] for r in listed].index("input-starved")
    ].items()
    assert all(row["meaning"].endswith(".") for row in listed)
    assert "host-sync" in run("causes").output


@pytest.mark.parametrize("words", ["hello my good old friend", "please look at this one for me"])
def test_words_that_say_nothing_are_answered_and_nobody_is_suspected(words: str) -> None:
    found = CliRunner().invoke(main, ["diagnose", words, "--json"])
    answer = json.loads(found.output)
    assert found.exit_code == 0 and answer["state"] == "unclear" and answer["ranked"] == []
    assert answer["next"] and not any("no reader" in str(note) for note in answer["notes"])
