"""The same inputs in any order, with any hash seed, any number of workers and either engine give the same bytes."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from stallwise.doctor import engine_local
from stallwise.doctor.examine import diagnose
from stallwise.render import strict_json
from stallwise.render.json import to_dict
from tests.trust.inputs import GOOD_LOG, TRAIN_LOG
from tests.trust.mixes import answer as digest
from tests.trust.mixes import elsewhere, material, mixes

REPO = Path(__file__).parents[2]
NCCL = "".join(
    f"node-0{n}:73{n}0:73{n}0 [{n}] NCCL INFO comm 0x5{n} rank {n} nranks 4 cudaDev {n} busId 1b000 - Init COMPLETE\n"
    for n in range(4)
)
BUNDLES = {  # a traced job with its logs; every rare format at once, damaged ones among them; a recorded card; a case in words
    "traced": REPO / "examples/traces/loader_slow",
    "rare": REPO / "tests/fuzz/seeds",
    "healthy": REPO / "tests/cases/none/compiled_healthy",
    "stated": REPO / "examples/scenarios/02_mfu_collapse",
}
MIXES, POOLED, SEED = 6, 3, 20261116  # mixes in all; of them through a pool


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for name, folder in BUNDLES.items():
        made[name] = tmp_path_factory.mktemp(name)
        for number, file in enumerate(sorted(p for p in folder.rglob("*") if p.is_file())):
            shutil.copy(file, made[name] / f"{number:02d}_{file.name}" if name == "rare" else made[name] / file.name)
    for name, text in {"a.log": GOOD_LOG, "b.log": TRAIN_LOG, "nccl.log": NCCL}.items():
        (made["traced"] / name).write_text(text)
    return made


def answer(*paths: str | Path, **options: object) -> str:
    return strict_json.dumps(to_dict(diagnose(*map(str, paths), cache=False, **options)), sort_keys=True)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def answers(folders: dict[str, Path]) -> dict[str, str]:
    return {name: answer(folder, workers=1) for name, folder in folders.items()}


@pytest.mark.parametrize("name", BUNDLES)
def test_the_order_of_files_and_the_number_of_workers_change_nothing(
    name: str, folders: dict[str, Path], answers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(folders[name].iterdir())
    shuffled = random.Random(name).sample(files, len(files))
    assert answer(*shuffled, workers=1) == answers[name]
    monkeypatch.setattr(engine_local, "WORTH_A_POOL_BYTES", 0)
    assert answer(*reversed(files), workers=2) == answers[name]


def test_random_mixes_are_answered_alike_in_any_order_pool_and_hash_seed(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = list(mixes(MIXES, SEED, material([])))
    wanted += [sorted(folder.iterdir()) for folder in folders.values()]
    plain = [digest(mix) for mix in wanted]
    assert len(set(plain)) == len(plain) and len(wanted) > MIXES
    assert elsewhere(wanted, order=1, hash_seed=4242) == plain  # this process has a hash seed of its own
    monkeypatch.setattr(engine_local, "WORTH_A_POOL_BYTES", 0)
    assert [digest(mix, order=7, workers=2) for mix in wanted[:POOLED]] == plain[:POOLED]


def test_what_was_kept_from_the_last_time_changes_nothing(
    folders: dict[str, Path], answers: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stallwise.doctor import cache

    monkeypatch.setenv("STALLWISE_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "WORTH_KEEPING_BYTES", 0)
    monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)  # it asks the environment once
    for _ in range(2):
        found = to_dict(diagnose(str(folders["traced"]), cache=True, workers=1))
        assert strict_json.dumps(found, sort_keys=True) == answers["traced"]
    assert any(tmp_path.iterdir())
