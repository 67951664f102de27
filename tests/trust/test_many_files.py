"""Folders of very many files: all are read, on all cores, with a count of how far; beyond a limit that can be raised it is said.

A real folder of 100,000 is timed by hand, not in a test; what it meets is all here, with a lower limit.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor import engine_local
from stallwise.doctor.examine import diagnose
from stallwise.doctor.find import find
from stallwise.doctor.findings.diagnosis import State
from stallwise.doctor.gather import SMALL_BYTES, _sizes
from stallwise.errors import UnreadableInput
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.limits import Limits, within
from tests.trust.inputs import GOOD_LOG, here


def filled(folder: Path, count: int, text: str = "") -> Path:
    """Data below the log of its job, whose name sorts behind all of it."""
    (folder / "data").mkdir()
    for number in range(count):
        (folder / "data" / f"item{number}.txt").write_text(text and f"{text} {number}\n")
    (folder / "train.log").write_text(GOOD_LOG)
    return folder


def test_beyond_the_limit_the_log_of_the_job_is_read_and_the_rest_is_said(tmp_path: Path) -> None:
    folder = filled(tmp_path, 40, "nothing to say")
    ran = here("diagnose", str(folder), "--max-files", "10", "--no-history")
    said = " ".join(ran.stdout.split())
    assert ran.returncode == 0 and "oom-" in said
    assert "41 files were found and 10 of them read; 31 were not looked at" in said
    assert "were not looked at" not in here("diagnose", str(folder), "--no-history").stdout


def test_files_that_were_not_looked_at_forbid_an_all_clear(tmp_path: Path) -> None:
    healthy = Path(__file__).parents[1] / "cases/none/gemm_loop_healthy"
    for file in (healthy / "trace.json.gz", healthy / "nvidia_smi.csv"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    count = sum(1 for _ in tmp_path.iterdir())
    assert diagnose(str(tmp_path), cache=False, workers=1).state is State.HEALTHY
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "other.log").write_text("worker 3 started\n")
    found = diagnose(str(tmp_path), cache=False, workers=1, limits=Limits(files=count))
    assert found.state is not State.HEALTHY and any("not looked at" in note.text for note in found.notes)


def test_which_files_are_read_does_not_depend_on_the_order_in_which_they_are_named(tmp_path: Path) -> None:
    folder = filled(tmp_path, 12)
    named = [str(p) for p in sorted(folder.rglob("*")) if p.is_file()]
    with within(Limits(files=5)):
        one, other = (find(paths) for paths in (named, reversed(named)))
    assert [a.name for a in one[0]] == [a.name for a in other[0]] and len(one[0]) == 5
    assert [error.problem for _, error in one[1]] == [error.problem for _, error in other[1]]


def test_thousands_of_empty_files_are_one_sentence(tmp_path: Path) -> None:
    for number in range(2000):
        (tmp_path / f"{number}.log").touch()
    with pytest.raises(UnreadableInput, match=r"0\.log is empty \(0 bytes\).* and 1997 more files"):
        diagnose(str(tmp_path), cache=False, workers=1)


def test_many_small_files_are_worth_a_pool_and_counted_as_files(tmp_path: Path) -> None:
    small = [Artifact(f"{n}.log", tmp_path / f"{n}.log") for n in range(600)]
    for artifact in small:
        assert artifact.path is not None
        artifact.path.write_text("x")
    assert sum(map(engine_local.work_bytes, small)) > engine_local.WORTH_A_POOL_BYTES
    assert sum(map(engine_local.work_bytes, small[:100])) < engine_local.WORTH_A_POOL_BYTES
    assert _sizes(small) == []
    (tmp_path / "trace.json").write_bytes(b"x" * SMALL_BYTES * 2)
    assert _sizes([Artifact("trace.json", tmp_path / "trace.json"), small[0]]) == [2.0 * SMALL_BYTES, 1.0]
