"""The same inputs in any order, with any hash seed and any number of workers give the same bytes."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from stallwise.doctor import engine_local
from stallwise.doctor.examine import diagnose
from stallwise.render import strict_json
from stallwise.render.json import to_dict
from tests.trust.inputs import GOOD_LOG, TRAIN_LOG, stallwise

REPO = Path(__file__).parents[2]
NCCL = "".join(
    f"node-0{n}:73{n}0:73{n}0 [{n}] NCCL INFO comm 0x5{n} rank {n} nranks 4 cudaDev {n} busId 1b000 - Init COMPLETE\n"
    for n in range(4)
)


@pytest.fixture
def bundle(tmp_path: Path) -> list[str]:
    files = {
        "a.log": GOOD_LOG,
        "b.log": TRAIN_LOG,
        "nccl.log": NCCL,
        "case.toml": 'gpu = "h100"\ngpus = 4\nmfu = "22%"\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for file in sorted((REPO / "examples/traces/loader_slow").iterdir()):
        shutil.copy(file, tmp_path / file.name)
    return [str(p) for p in sorted(tmp_path.iterdir())]


def answer(paths: list[str], **options: object) -> str:
    return strict_json.dumps(to_dict(diagnose(paths, cache=False, **options)), sort_keys=True)  # type: ignore[arg-type]


def test_the_order_of_files_and_the_number_of_workers_change_nothing(
    bundle: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = answer(bundle, workers=1)
    for seed in range(3):
        shuffled = random.Random(seed).sample(bundle, len(bundle))
        assert answer(shuffled, workers=1) == first
    assert answer([str(Path(bundle[0]).parent)], workers=1) == first
    monkeypatch.setattr(engine_local, "WORTH_A_POOL_BYTES", 0)
    assert answer(bundle, workers=2) == first


def test_the_hash_seed_changes_nothing(bundle: list[str]) -> None:
    answers = set()
    for seed in ("0", "4242"):
        ran = stallwise("diagnose", *bundle, "--json", "--no-cache", env={**os.environ, "PYTHONHASHSEED": seed})
        assert ran.returncode == 0, ran.stderr
        answers.add(ran.stdout)
    assert len(answers) == 1
