"""The library as others use it, what is installed, and what survives a kill."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

import stallwise
from stallwise.drill.journal import Event, Journal
from stallwise.errors import BadRequest
from tests.trust.inputs import GOOD_LOG, TRAIN_LOG
from tests.trust.inputs import stallwise as command
from tests.trust.kills import KINDS, kill

REPO = Path(__file__).parents[2]


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    good, bad = tmp_path / "good.log", tmp_path / "bad.log"
    good.write_text(TRAIN_LOG)
    bad.write_text(TRAIN_LOG.replace("120 ms", "240 ms") + GOOD_LOG)
    return good, bad


def test_verbs_take_texts_paths_and_lists(logs: tuple[Path, Path]) -> None:
    good, bad = logs
    answers = [stallwise.diagnose(x).ranked for x in (str(bad), bad, [str(bad)], [bad], (p for p in [bad]))]
    assert all(a == answers[0] for a in answers)
    for one, two in ((str(good), str(bad)), (good, bad), ([good], [str(bad)])):
        found = stallwise.compare(one, two)
        assert found.good.evidence.inputs == [str(good)] and found.bad.evidence.inputs == [str(bad)]
    for wrong in (b"x.log", 17, [3.5]):
        with pytest.raises(BadRequest):
            stallwise.diagnose(wrong)  # type: ignore[arg-type]


def test_results_say_themselves_in_one_line(logs: tuple[Path, Path]) -> None:
    diagnosis, comparison = stallwise.diagnose(logs[1]), stallwise.compare(*logs)
    plan = stallwise.plan("llama-3-8b", "8xh100", seq=4096, global_batch=64)
    for result in (diagnosis, comparison, plan, diagnosis.evidence):
        assert "\n" not in repr(result) and len(repr(result)) < 250
    assert repr(diagnosis).startswith("<Diagnosis sick: oom")


def test_planning_simulating_and_replaying_are_verbs() -> None:
    assert stallwise.plan("llama-3-8b", "8xh100", seq=4096, global_batch=64).best
    assert stallwise.simulate(4, 16)["bubble_step_share"] > 0
    assert stallwise.whatif(REPO / "src/stallwise/surfaces/cli/_demo/loader_slow/trace.json.gz").alone


def test_the_package_is_typed_and_has_a_demo_for_anywhere(tmp_path: Path) -> None:
    assert (REPO / "src/stallwise/py.typed").exists()
    ran = command("demo", cwd=tmp_path)
    assert ran.returncode == 0 and "input-starved" in ran.stdout


def test_what_is_installed_is_pinned() -> None:
    assert f"default: stallwise=={stallwise.__version__} " in (REPO / "action.yml").read_text()
    lock = (REPO / "requirements-dev.lock").read_text().splitlines()[1:]
    assert all(re.fullmatch(r"[\w.-]+==[\w.!+-]+ --hash=sha256:[0-9a-f]{64}", line) for line in lock)
    pinned = {line.split("==")[0].replace("_", "-") for line in lock}
    project = (REPO / "pyproject.toml").read_text()
    wanted = re.findall(r'^  "([a-z][\w-]*)[><=]', project.split("[project.optional")[0], re.M)
    assert set(wanted) <= pinned
    assert "threat" in (REPO / "SECURITY.md").read_text() or "not trusted" in (REPO / "SECURITY.md").read_text()


def test_bundles_are_their_owners_alone(tmp_path: Path) -> None:
    from stallwise.recorder.writer import claim

    os.umask(0o022)
    claim(str(tmp_path / "bundle"), ["rank-00000.jsonl", "other.jsonl"])
    assert stat.S_IMODE((tmp_path / "bundle").stat().st_mode) == 0o700


def test_half_a_line_of_a_round_spoils_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "round.jsonl")
    journal.append(Event("start", "a", 0.0))
    with journal.path.open("a") as file:
        file.write('{"kind": "as')
    journal.append(Event("ask", "b", 1.0))
    journal.append(Event("ask", "c", 2.0))
    assert [e.text for e in journal.events()] == ["a", "b", "c"]


def test_kills_at_random_moments_lose_nothing() -> None:
    assert kill(len(KINDS), seed=5) == []
