"""diagnose -o, --share, --fail-on, --github; check; completion; formats: files, exit codes and words."""

from __future__ import annotations

import json
import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stallwise.errors import StallwiseError
from stallwise.surfaces.cli import main

REPO = Path(__file__).parents[2]
CASE = REPO / "examples" / "scenarios" / "02_mfu_collapse" / "case.toml"
TRACE = REPO / "examples" / "traces" / "loader_slow"


def called(*words: str, **env: str) -> Result:
    """As the console script would end: errors of ours become their exit code."""
    result = CliRunner(env=env).invoke(main, list(words))
    if isinstance(result.exception, StallwiseError):
        result.exit_code = result.exception.exit_code
    return result


@pytest.mark.parametrize("ending", ["html", "md", "json", "txt", "sarif", "xml"])
def test_the_ending_picks_the_form(tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"report.{ending}"
    assert called("diagnose", str(CASE), "-o", str(out)).exit_code == 0
    text = out.read_text(encoding="utf-8")
    starts = {"html": "<!doctype html>", "md": "# ", "json": "{", "sarif": "{", "xml": "<?xml", "txt": ""}
    assert text.startswith(starts[ending])
    if ending in ("json", "sarif"):
        json.loads(text)
    if ending == "xml":
        Xml.fromstring(text)


def test_several_reports_at_once(tmp_path: Path) -> None:
    outs = [str(tmp_path / n) for n in ("a.html", "b.md")]
    assert called("diagnose", str(CASE), "-o", outs[0], "-o", outs[1]).exit_code == 0
    assert all(Path(o).stat().st_size > 500 for o in outs)


@pytest.mark.parametrize("name", ["report.pdf", "missing/report.html"])
def test_an_impossible_report_is_a_usage_error(tmp_path: Path, name: str) -> None:
    assert called("diagnose", str(CASE), "-o", str(tmp_path / name)).exit_code == 2


def test_share_keeps_the_folder_secret(tmp_path: Path) -> None:
    folder = tmp_path / "project-umbrella"
    folder.mkdir()
    (folder / "case.toml").write_bytes(CASE.read_bytes())
    out = tmp_path / "report.html"
    result = called("diagnose", str(folder / "case.toml"), "--share", "-o", str(out))
    assert result.exit_code == 0
    assert "umbrella" not in out.read_text(encoding="utf-8") and "umbrella" not in result.output


def test_an_annotated_trace_is_written(tmp_path: Path) -> None:
    for name, share in (("annotated.json.gz", False), ("shared.json.gz", True)):
        words = ["diagnose", str(TRACE), "-o", str(tmp_path / name), *(["--share"] if share else [])]
        assert called(*words).exit_code == 0
    assert (tmp_path / "shared.json.gz").stat().st_size < (tmp_path / "annotated.json.gz").stat().st_size


@pytest.mark.parametrize(
    ("wanted", "code"),
    [("any", 1), ("input-starved", 1), ("10%", 1), ("99%", 0), ("oom-logits", 0), ("input-straved", 2)],
)
def test_fail_on_sets_the_exit_code(wanted: str, code: int) -> None:
    assert called("diagnose", str(TRACE), "--fail-on", wanted).exit_code == code


def test_github_gets_annotations_and_a_summary(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    result = called("diagnose", str(TRACE), "--github", GITHUB_STEP_SUMMARY=str(summary))
    assert "::warning file=" in result.output and "input-starved" in result.output
    assert summary.read_text(encoding="utf-8").startswith("# FOUND The GPU waits for input")


@pytest.mark.parametrize(("case", "changed"), [("h2d-copy-exposed/h2d_pageable", True), ("input-starved", False)])
def test_a_patch_holds_what_lint_changes_for_the_first_cause_and_applies_nothing(
    tmp_path: Path, case: str, changed: bool
) -> None:
    script, patch = tmp_path / "train.py", tmp_path / "fix.patch"
    script.write_text("loader = DataLoader(data, num_workers=4)\nfor x in loader:\n    step(x.cuda())\n")
    before = script.read_text()
    result = called(
        "diagnose", str(REPO / "tests" / "cases" / case), "--fact", f"job.script={script}", "--patch", str(patch)
    )
    assert patch.exists() == changed and ("no patch" in result.output) != changed, result.output
    assert script.read_text() == before
    if changed:
        assert "+loader = DataLoader(data, num_workers=4, pin_memory=True)" in patch.read_text().splitlines()


def settings(tmp_path: Path, text: str) -> str:
    file = tmp_path / "stallwise.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_check_breaks_and_keeps_budgets(tmp_path: Path) -> None:
    file = settings(tmp_path, '[budgets]\nstep_time = "1s"\ninput_wait = "2%"\nttft = "1s"\n')
    junit, sarif = tmp_path / "junit.xml", tmp_path / "findings.sarif"
    result = called("check", str(TRACE), "--config", file, "--github", "--junit", str(junit), "--sarif", str(sarif))
    assert result.exit_code == 1
    assert "kept     step_time" in result.output and "broken   input_wait" in result.output
    assert "unknown  ttft" in result.output
    assert f"::error file={file},line=3" in result.output
    suite = Xml.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert json.loads(sarif.read_text(encoding="utf-8"))["runs"][0]["results"][0]["ruleId"] == "input-starved"


def test_check_passes_when_all_is_kept(tmp_path: Path) -> None:
    file = settings(tmp_path, '[budgets]\nstep_time = "1s"\n')
    assert called("check", str(TRACE), "--config", file).exit_code == 0
    answer = json.loads(called("check", str(TRACE), "--config", file, "--json").output)
    assert answer["failed"] is False and answer["budgets"][0]["broken"] is False


def test_strict_takes_unknown_for_broken(tmp_path: Path) -> None:
    file = settings(tmp_path, '[budgets]\nttft = "1s"\n')
    assert called("check", str(TRACE), "--config", file).exit_code == 0
    assert called("check", str(TRACE), "--config", file, "--strict").exit_code == 1


@pytest.mark.parametrize("text", ["not toml [", "[budgets]\nnonsense_word = 1\n", "", "budgets = 3\n"])
def test_bad_settings_are_usage_errors(tmp_path: Path, text: str) -> None:
    assert called("check", str(TRACE), "--config", settings(tmp_path, text)).exit_code == 2


def test_the_example_settings_are_valid(tmp_path: Path) -> None:
    text = called("check", "--example").output
    assert called("check", str(TRACE), "--config", settings(tmp_path, text)).exit_code == 1


def test_paths_of_the_settings_are_relative_to_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "case.toml").write_bytes(CASE.read_bytes())
    settings(tmp_path, '[budgets]\nmfu = ">= 40%"\n[check]\npaths = ["runs/"]\n')
    deeper = tmp_path / "runs"
    monkeypatch.chdir(deeper)  # the nearest settings upwards
    assert called("check").exit_code == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_program(shell: str) -> None:
    assert "_STALLWISE_COMPLETE" in called("completion", shell).output


def test_formats_are_listed_from_the_readers() -> None:
    rows = json.loads(called("formats", "--json").output)
    assert len(rows) > 30 and all(r["reads"] for r in rows)
    assert "nvidia-smi CSV" in called("formats", "nvidia").output


def test_the_action_and_the_hooks_call_commands_that_exist() -> None:
    known = set(main.list_commands(None))  # type: ignore[arg-type]
    for name in ("action.yml", ".pre-commit-hooks.yaml"):
        text = (REPO / name).read_text(encoding="utf-8")
        used = {
            line.split("stallwise ")[1].split()[0]
            for line in text.splitlines()
            if ("entry: stallwise " in line or line.strip().startswith("stallwise "))
        }
        assert used and used <= known
