"""The history compares like with like: one command or name of files in one folder, on one card, scale and model."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from stallwise.doctor import history
from stallwise.doctor.examine import diagnose
from stallwise.surfaces.cli import main
from stallwise.surfaces.cli._remembered import family, remembered

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
EXAMPLE = Path(__file__).parents[2] / "examples" / "traces" / "loader_slow" / "trace.json.gz"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    file = tmp_path / "kept" / "history.jsonl"
    monkeypatch.setenv("STALLWISE_HISTORY", str(file))
    return file


@pytest.fixture
def projects(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders that hold a project each, and the same script by name."""
    both = (tmp_path / "vision", tmp_path / "speech")
    for folder in both:
        (folder / ".git").mkdir(parents=True)
    return both


def log(path: Path, step_s: float, more: str = "") -> str:
    noise = np.random.default_rng(len(str(path))).normal(1.0, 0.005, 40)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"step {n} loss 2.1 step_time {step_s * x:.4f}{more}\n" for n, x in enumerate(noise)))
    return str(path)


def shown(*words: str) -> str:
    result = CliRunner().invoke(main, ["history", *words])
    assert result.exception is None, result.exception
    return result.stdout


def test_one_command_in_two_folders_is_two_series(
    kept: Path, projects: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, step_s in zip(projects, (0.1, 0.25), strict=True):
        monkeypatch.chdir(folder)
        for n in range(3):
            run = log(folder / f"run{n}" / "train.log", step_s)
            remembered(diagnose(run), [str(Path(run).parent)], command="python train.py")
    assert "slower" not in capsys.readouterr().err, "2.5 times as slow as another project's is nobody's regression"
    assert [len(s) for s in history.series_of(history.load())] == [3, 3]


def test_only_the_present_projects_runs_are_shown(
    kept: Path, projects: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in projects:
        monkeypatch.chdir(folder)
        remembered(diagnose(log(folder / "out" / "train.log", 0.1)), [str(folder / "out")], command="python train.py")
    (projects[0] / "deep" / "below").mkdir(parents=True)
    monkeypatch.chdir(projects[0] / "deep" / "below")
    assert (
        "vision" in shown()
        and "speech" not in shown()
        and "1 run of other projects: stallwise history --all" in shown()
    )
    assert {s["name"].split()[-1] for s in json.loads(shown("--all", "--json"))["series"]} == set(map(str, projects))
    monkeypatch.chdir(projects[1])
    assert shown("--clear").strip() == "1 runs forgotten"
    assert "No run of this project" in shown() and "stallwise history --all" in shown()
    assert [k.folder for k in history.load()] == [str(projects[0])], "the other project's runs are still there"


def test_files_asked_for_from_a_project_are_its_runs_wherever_they_lie(
    kept: Path, projects: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(projects[0])
    data = log(tmp_path / "data" / "train.log", 0.1)
    remembered(diagnose(data), [data])
    assert str(tmp_path / "data") in shown()
    monkeypatch.chdir(projects[1])
    assert str(tmp_path / "data") not in shown()
    monkeypatch.chdir(tmp_path / "data")
    assert str(tmp_path / "data") in shown()


def test_unlike_files_of_one_folder_are_not_compared(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two traces and a log, the slowest last: "4619% slower than the runs of the week before"."""
    for n in range(3):
        run = log(tmp_path / f"small_{n}.log", 0.01)
        remembered(diagnose(run), [run])
    large = log(tmp_path / "large.log", 0.47)
    remembered(diagnose(large), [large])
    assert capsys.readouterr().err == ""
    assert sorted(len(s) for s in history.series_of(history.load())) == [1, 3]


def test_a_larger_batch_is_another_series(kept: Path, tmp_path: Path) -> None:
    for n, (step_s, batch) in enumerate([(0.1, 64)] * 3 + [(1.4, 1024)]):
        run = log(tmp_path / "train.log", step_s, f" global_batch_size {batch}")
        moved = history.remember(diagnose(run), "python train.py", str(n), NOW + timedelta(hours=n), folder=tmp_path)
        assert moved is None
    assert [len(s) for s in history.series_of(history.load())] == [3, 1]


def test_another_programs_trace_under_the_same_name_is_another_series(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its kernels tell: a trace has no command line."""
    for n in range(3):
        (tmp_path / f"run{n}").mkdir()
        shutil.copy(EXAMPLE, tmp_path / f"run{n}")
        remembered(diagnose(str(tmp_path / f"run{n}")), [str(tmp_path / f"run{n}")])
    runs = history.load()
    assert [len(s) for s in history.series_of(runs)] == [3] and runs[0].series == "run#"
    other = replace(
        runs[0], key="other", work={**runs[0].work, "step.launches": 90.0}, value=47 * (runs[0].value or 0.0)
    )
    assert sorted(len(s) for s in history.series_of([*runs, other])) == [1, 3]


def test_a_regression_of_the_same_work_is_still_told(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for n, step_s in enumerate((0.1, 0.1, 0.1, 0.13)):
        run = log(tmp_path / f"run{n}" / "train.log", step_s, " global_batch_size 64")
        remembered(diagnose(run), [run], command="python train.py")
    assert "slower than the 3 runs of the week before" in capsys.readouterr().err


def test_lines_of_an_earlier_version_are_kept_apart(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    old = {"when": NOW.isoformat(), "series": "python train.py", "run": "a", "key": "k", "metric": "step time", "value": 1.0,
           "unit": "s", "rate": False, "state": "sick", "cause": "", "sure": 0.0}  # fmt: skip
    kept.parent.mkdir()
    kept.write_text(json.dumps(old) + "\n" + json.dumps({**old, "work": "no table"}) + "\n")
    assert "1 run of other projects" in shown() and "python train.py" in shown("--all")


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("run2", "run10", True), ("train_2026-03-19.log", "train_2026-03-20.log", True), ("0.log", "11.log", True),
        ("llama7b.log", "llama70b.log", False), ("train.log", "eval.log", False), ("rank3_a", "rank4_b", False),
    ],
)  # fmt: skip
def test_names_that_differ_in_a_count_or_a_date_are_one_series(one: str, other: str, alike: bool) -> None:
    assert (family(one) == family(other)) is alike
