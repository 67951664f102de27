"""Trends over runs and the history: changes are told from noise, and a regression shows against last week."""

from __future__ import annotations

import json
import shutil
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from stallwise.doctor import history
from stallwise.doctor.examine import diagnose
from stallwise.doctor.levels import last_against, level_changes
from stallwise.doctor.run_folders import runs_of
from stallwise.doctor.trend import trend
from stallwise.errors import StallwiseError
from stallwise.surfaces.cli import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "traces" / "loader_slow"
NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)


def log(path: Path, step_s: float, seed: int = 0, extra: str = "") -> str:
    noise = np.random.default_rng(seed).normal(1.0, 0.01, 60)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"step {n} loss {3 - n / 100:.3f} step_time {step_s * x:.4f}{extra}" for n, x in enumerate(noise)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def called(*words: str) -> Result:
    result = CliRunner().invoke(main, list(words))
    assert result.exception is None or isinstance(result.exception, (SystemExit, StallwiseError)), result.exception
    return result


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ([100, 101, 120, 121], [2]), ([100, 101, 99, 100, 100, 131, 130, 129, 110, 111, 109], [5, 8]),
        ([100, 100, 120, 120, 100, 100], [2, 4]),  # came and went
        ([100, 100, 150, 100, 100], []),  # one bad day is no level
        ([100, 103, 98, 101, 97, 102], []), ([100, 140, 90, 150, 95, 141], []), ([100, 120], []), ([], []),
        ([100.0, 100.0, 100.0, 100.4, 100.4, 100.4], []),  # too little to be anybody's regression
    ],
)  # fmt: skip
def test_levels_are_told_from_noise(values: list[float], places: list[int]) -> None:
    assert [c.at for c in level_changes(np.log(np.array(values, dtype=float)))] == places


def test_series_without_a_change_are_seldom_given_one() -> None:
    rng = np.random.default_rng(7)
    for count, noise in ((5, 0.03), (8, 0.05), (20, 0.02)):
        named = sum(bool(level_changes(rng.normal(0.0, noise, count))) for _ in range(100))
        assert named <= 12, (count, noise)  # five in a hundred, and what chance adds to that


def test_a_last_run_stands_out_only_of_quiet_ones() -> None:
    assert last_against(np.log([100.0, 101, 99, 100, 118]))[1] > 1.0
    assert last_against(np.log([100.0, 125, 90, 110, 118]))[1] < 1.0


def test_many_runs_name_the_run_at_which_it_changed(tmp_path: Path) -> None:
    runs = [log(tmp_path / f"run{n}" / "train.log", 0.2 if n < 12 else 0.26, n) for n in (8, 9, 10, 11, 12, 13, 14)]
    found = trend([str(Path(r).parent) for r in runs])
    assert [found.runs[s.at].name for s in found.shifts] == ["run12"]
    assert found.shifts[0].ratio == pytest.approx(1.3, rel=0.02) and found.shifts[0].why is not None
    assert runs_of([str(tmp_path)]) == [str(Path(r).parent) for r in runs]  # as people count: 8, 9, 10
    page = tmp_path.parent / "trend.html"
    result = called("compare", str(tmp_path), "-o", str(page), "--fail-on", "3%")
    assert result.exit_code == 1 and "slower from run12 on" in result.output
    assert "slower from run12 on" in page.read_text(encoding="utf-8") and "over 7 runs" in page.read_text(
        encoding="utf-8"
    )
    told = json.loads(called("compare", str(tmp_path), "--json").stdout)
    assert told["changes"][0]["between"] == ["run11", "run12"] and len(told["runs"]) == 7


def test_a_rate_that_falls_is_slower(tmp_path: Path) -> None:
    for n, rate in enumerate((1000, 1003, 998, 800, 803, 799)):
        lines = "".join(f"step {i} tokens_per_second {rate + i % 3}\n" for i in range(40))
        (tmp_path / f"{n}.log").write_text(lines, encoding="utf-8")
    found = trend(runs_of([str(tmp_path)]))
    assert found.rate and [s.at for s in found.shifts] == [3] and found.shifts[0].ratio > 1.2


def refused(folder: Path) -> str:
    """What `compare` says of a single folder that is one run."""
    result = called("compare", str(folder))
    assert isinstance(result.exception, StallwiseError) and result.exception.exit_code == 2, result.output
    assert "OTHER_RUN" in result.exception.hint
    return result.exception.problem


def test_the_files_of_one_run_are_not_runs(tmp_path: Path) -> None:
    for name in ("trace.json.gz", "nvidia_smi.csv"):
        shutil.copy(EXAMPLE / name, tmp_path)
    said = refused(tmp_path)
    assert "different kinds" in said and "PyTorch trace" in said and "nvidia-smi" in said
    log(tmp_path / "train.log", 0.2)
    (tmp_path / "host").mkdir()  # one folder beside the files makes none of them a run
    assert "different kinds" in refused(tmp_path)


def test_a_bundle_is_one_run_whatever_lies_in_it(tmp_path: Path) -> None:
    (tmp_path / "bundle.json").write_text("{}")
    for part in ("traces", "samples"):
        (tmp_path / part).mkdir()
    assert "the bundle of a recorded job" in refused(tmp_path)


def test_the_ranks_of_one_run_are_not_runs(tmp_path: Path) -> None:
    for rank in range(4):
        lines = [{"k": "run", "v": 1, "rank": rank, "world": 4, "t": 0, "env": {}}]
        lines += [{"k": "step", "n": n, "t": n * 0.1, "d": 0.1, "s": {"forward": 0.05}} for n in range(30)]
        (tmp_path / f"rank-{rank:05}.jsonl").write_text(
            "".join(json.dumps(x, separators=(",", ":")) + "\n" for x in lines)
        )
    assert "each of its 4 files tells of other ranks" in refused(tmp_path)


def test_a_note_beside_the_runs_is_no_run(tmp_path: Path) -> None:
    for n in range(3):
        log(tmp_path / f"run{n}" / "train.log", 0.2, n)
    (tmp_path / "notes.md").write_text("lunch at noon\n")
    assert [Path(r).name for r in runs_of([str(tmp_path)])] == ["run0", "run1", "run2"]


def test_one_run_is_nothing_to_compare(tmp_path: Path) -> None:
    result = called("compare", log(tmp_path / "train.log", 0.2))
    assert isinstance(result.exception, StallwiseError) and result.exception.exit_code == 2


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    file = tmp_path / "kept" / "history.jsonl"
    monkeypatch.setenv("STALLWISE_HISTORY", str(file))
    return file


def week(tmp_path: Path, steps: tuple[float, ...]) -> list[history.Moved | None]:
    found = []
    for n, step_s in enumerate(steps):
        run = log(tmp_path / "runs" / f"{n}.log", step_s, n)
        when = NOW - timedelta(days=len(steps) - n)
        found.append(history.remember(diagnose(run), "nightly", f"{n}.log", when))
    return found


def test_a_regression_shows_against_last_week(tmp_path: Path, kept: Path) -> None:
    moved = week(tmp_path, (0.2, 0.201, 0.2, 0.199, 0.24))
    assert moved[:4] == [None] * 4
    last = moved[-1]
    assert last is not None and last.runs == 4 and last.ratio == pytest.approx(1.2, rel=0.02)
    shown = " ".join(called("history").stdout.split())  # where lines break depends on the folder's name
    assert "slower than the 4 runs of the week before" in shown and "nightly" in shown
    assert str(kept).replace("/", "") in shown.replace("/", "").replace(" ", "")
    told = json.loads(called("history", "night", "--json").stdout)["series"][0]
    assert told["against_last_week"]["runs"] == 4 and len(told["runs"]) == 5


def test_runs_older_than_a_week_are_not_last_week(tmp_path: Path, kept: Path) -> None:
    for n in range(4):
        run = log(tmp_path / f"{n}.log", 0.2, n)
        history.remember(diagnose(run), "nightly", run, NOW - timedelta(days=30 + n))
    slow = log(tmp_path / "slow.log", 0.3)
    assert history.remember(diagnose(slow), "nightly", slow, NOW) is None


def test_the_history_is_the_owners_and_bounded(tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_OF_A_SERIES", 3)
    week(tmp_path, (0.2, 0.2, 0.2, 0.2, 0.2))
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600 and stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert [k.run for k in history.load()] == ["2.log", "3.log", "4.log"]
    kept.write_text("not a line\n{}\n" + kept.read_text() + '{"when": "tuesday"}\n', encoding="utf-8")
    assert len(history.load()) == 3
    assert called("history", "--clear").stdout.strip() == "3 runs forgotten" and history.load() == []


def test_diagnose_keeps_a_run_once_and_can_be_told_not_to(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = log(tmp_path / "runs" / "a" / "train.log", 0.2)
    called("diagnose", run, "--no-history")
    called("diagnose", run, "--share")
    called("diagnose", "--fact", "mfu=0.2")
    assert not kept.exists()
    called("diagnose", run)
    called("diagnose", run)
    found = [(k.folder, k.series, k.run, k.metric) for k in history.load()]
    assert found == [(str(Path(run).parent), "train.log", "train.log", "step time")]
    monkeypatch.setenv("STALLWISE_HISTORY", "off")
    assert "No history is kept" in called("history").stdout
