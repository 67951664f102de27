"""The lint command on good loops, ignored lines, odd input and every output format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from stallwise.causes import all_rules
from stallwise.errors import UnreadableInput
from stallwise.lint import all_checks, lint
from stallwise.surfaces.cli.lint import command

LOOPS = sorted((Path(__file__).parents[2] / "examples" / "loops").glob("*.py"))
BAD = """
import torch
for x in loader:
    loss = model(x)
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


@pytest.mark.parametrize("path", LOOPS, ids=lambda p: p.stem)
def test_well_written_loops_have_no_remarks(path: Path) -> None:
    assert lint(path.read_text(), path.name) == []


def test_there_are_three_of_them() -> None:
    assert len(LOOPS) >= 3


def test_an_ignored_line_is_left_alone() -> None:
    quiet = BAD.replace("loss.item())", "loss.item())  # stallwise: ignore[host-sync]")
    assert "host-sync" in {r.cause for r in lint(BAD)}
    assert "host-sync" not in {r.cause for r in lint(quiet)}
    other = BAD.replace("loss.item())", "loss.item())  # stallwise: ignore[memory-leak]")
    assert "host-sync" in {r.cause for r in lint(other)}


def test_every_check_names_a_cause_of_the_catalogue() -> None:
    known = {r.cause for r in all_rules()}
    assert {m.CAUSE for m in all_checks()} <= known


def test_text_that_is_not_python_is_refused_with_a_hint() -> None:
    with pytest.raises(UnreadableInput) as error:
        lint("def (:\n", "broken.py")
    assert "line 1" in error.value.problem and error.value.hint


def run(tmp_path: Path, *options: str, text: str = BAD) -> tuple[int, str]:
    script = tmp_path / "train.py"
    script.write_text(text)
    result = CliRunner().invoke(command, [str(script), *options])
    return result.exit_code, result.output


def test_output_formats_say_the_same(tmp_path: Path) -> None:
    code, text = run(tmp_path)
    assert code == 1 and "train.py:7:" in text and "host-sync" in text
    rows = json.loads(run(tmp_path, "--json")[1])["remarks"]
    sarif = json.loads(run(tmp_path, "--format", "sarif")[1])
    assert sarif["version"] == "2.1.0" and len(sarif["runs"][0]["results"]) == len(rows)
    github = run(tmp_path, "--format", "github")[1].splitlines()
    assert len(github) == len(rows) and github[0].startswith("::warning file=")


def test_nothing_found_is_exit_zero(tmp_path: Path) -> None:
    assert run(tmp_path, text="x = 1\n") == (0, "nothing found in 1 file\n")
