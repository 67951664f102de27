"""Ray's answer is the local one, bit for bit: a real Ray, started here."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.gather import gather
from stallwise.errors import MissingExtra
from stallwise.render.json import to_dict
from tests.doctor.test_gather import comparable, own_cache  # noqa: F401
from tests.measures.rank_copies import plain_training, write_copies
from tests.sim.job.planted import Fault, Plan
from tests.sim.job.written import write_ranks


@pytest.fixture
def with_ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    ray = pytest.importorskip("ray")
    source = str(Path(__file__).parents[2] / "src")
    monkeypatch.setenv("PYTHONPATH", source)  # workers import the package from where this test does
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    yield
    ray.shutdown()


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("with_ray")
def test_ray_gives_exactly_the_local_answer(tmp_path: Path) -> None:
    folder = write_copies(tmp_path / "run", plain_training(), 6, late=(4,), kind="input", delay_us=400.0)
    (folder / "rank-2.json.gz").write_bytes(b"\x1f\x8b broken")
    local = gather([str(folder)], engine="local", cache=False)
    remote = gather([str(folder)], engine="ray", workers=2, cache=False)
    assert comparable(remote) == comparable(local)
    answers = [to_dict(diagnose(str(folder), engine=e, workers=2, cache=False)) for e in ("local", "ray")]
    assert json.dumps(answers[0], sort_keys=True) == json.dumps(answers[1], sort_keys=True)
    assert answers[1]["ranked"][0] == "straggler-rank"


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("with_ray")
def test_ray_reads_operations_of_all_ranks_alike(tmp_path: Path) -> None:
    """A hundred and twenty-eight ranks, of which one is damaged, one is cut off and one is missing."""
    plan = Plan("1f1b", 64, 2, 1, 4, 3, 3, faults=(Fault("worker", 2, 1, 0, 1.8),))
    folder = write_ranks(tmp_path / "run", plan)
    (folder / "rank_1.json").write_bytes(b"[{")
    whole = (folder / "rank_9.json").read_bytes()
    (folder / "rank_9.json").write_bytes(whole[: len(whole) // 2])
    (folder / "rank_20.json").unlink()
    answers = [to_dict(diagnose(str(folder), engine=e, workers=2, cache=False)) for e in ("local", "ray")]
    assert json.dumps(answers[0], sort_keys=True) == json.dumps(answers[1], sort_keys=True)
    assert answers[1]["ranked"][0] == "straggler-rank"
    assert "rank 66 (data-parallel rank 2, pipeline stage 1)" in answers[1]["findings"][0]["headline"]


def test_without_ray_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    folder = write_copies(tmp_path, plain_training(steps=2), 2)
    with pytest.raises(MissingExtra, match="ray"):
        gather([str(folder)], engine="ray", cache=False)
