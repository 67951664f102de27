"""What is compiled from the source is as the source is, a stale index is noticed, and what is not loaded had nothing to say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from tests.incidents.archive import unpacked

import stallwise
from stallwise.causes import _index as rules
from stallwise.causes import all_rules
from stallwise.doctor.findings.finding import Finding
from stallwise.doctor.gather import gather
from stallwise.doctor.measures import _index as measures
from stallwise.doctor.measures import measure_evidence
from stallwise.evidence import catalog
from stallwise.evidence.compiled import NAME, is_fresh
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.inputs import Inputs

ROOT = Path(__file__).parents[2]
COMPILERS = pytest.mark.parametrize("compiler", [rules, measures], ids=["rules", "measures"])
INPUTS = [
    "the GPU is idle half of the time",
    "one rank is 40% slower than the others",
    "loss became NaN at step 900, fp16",
]
EXAMPLES = sorted(str(p) for p in (unpacked() / "public_dev").iterdir() if p.is_dir())[::12]


@COMPILERS
def test_the_index_is_as_the_source_is(compiler: Callable[..., object]) -> None:
    folder, build = compiler.FOLDER, compiler.build  # type: ignore[attr-defined]
    index = json.loads((folder / NAME).read_text(encoding="utf-8"))
    assert is_fresh(folder, index, every=True), "make index"
    assert index["rows"] == build()[0], "make index"


@pytest.mark.parametrize("family", catalog.FAMILIES)
def test_type_checkers_know_the_catalogue_as_it_is(family: str) -> None:
    assert (catalog.FOLDER / f"{family}.pyi").read_text(encoding="utf-8") == catalog.stub(family), "make index"


def scratch(tmp_path: Path) -> Path:
    shutil.copytree(
        Path(stallwise.__file__).parent, tmp_path / "stallwise", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path


def causes(place: Path, *words: str) -> str:
    command = [sys.executable, "-m", "stallwise", *(words or ("causes",))]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(place)})
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_a_new_cause_is_there_before_the_index_is_compiled(tmp_path: Path) -> None:
    place = scratch(tmp_path)
    step = place / "stallwise" / "causes" / "step"
    for suffix in (".py", ".toml"):
        text = (step / f"host_sync{suffix}").read_text(encoding="utf-8")
        (step / f"host_nap{suffix}").write_text(text.replace("def host_sync", "def host_nap"), encoding="utf-8")
    assert "host-nap" in causes(place)


def test_an_edited_cause_is_not_read_off_an_old_index(tmp_path: Path) -> None:
    place = scratch(tmp_path)
    code = "from stallwise.causes import all_rules; print({r.cause: r.seen for r in all_rules()}['host-sync'])"
    file = place / "stallwise" / "causes" / "step" / "host_sync.toml"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(place)}
    )
    assert said.stdout.strip(), said.stderr
    file.write_text(
        file.read_text(encoding="utf-8").replace(said.stdout.strip(), "x" * len(said.stdout.strip())), encoding="utf-8"
    )
    again = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(place)}
    )
    assert set(again.stdout.strip()) == {"x"}, "of the same size, and yet another text"


@pytest.mark.parametrize("given", [*INPUTS, *EXAMPLES], ids=lambda g: Path(g).name[:40])
def test_who_is_not_asked_had_nothing_to_say(given: str) -> None:
    evidence = gather([given], workers=1, cache=False)
    for name, row in json.loads((measures.FOLDER / NAME).read_text(encoding="utf-8"))["rows"].items():
        if "reads" in row and not Inputs.of(row["reads"]).present(evidence):
            module = import_module(f"{measures.PACKAGE}.{name}")
            assert not list(module.from_evidence(evidence.copied())), name
    measure_evidence(evidence)
    for rule in all_rules():
        for judged in filter(None, (rule, rule.in_trace)):
            assert judged.reads is not None
            if not judged.reads.present(evidence) and not judged.needs and not judged.per:
                assert not judged.judge(evidence), rule.cause


def test_nothing_read_is_nothing_said() -> None:
    found = [f for rule in all_rules() for f in rule.verdicts(Evidence()) if isinstance(f, Finding)]
    assert not found
