"""What CONTRIBUTING says of additions is true: each is one file or one line in a copy of the tree, and works at once.

A cause is added in test_new_cause.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORMAT = '''
"""Steps of the Lantern trainer, one a line: `lantern <step> <seconds>`."""

from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Series, Source

FORMAT = "Lantern steps"
CAPTURE = "lantern train --steps-to steps.lantern"
EXCLUSIVE = True


def recognises(name: str, head: bytes) -> bool:
    return head.startswith(b"lantern ")


def read(artifact: Artifact) -> Iterator[Item]:
    rows = np.array([line.split()[1:3] for line in artifact.lines() if line.startswith("lantern ")], float)
    yield Series(run.STEP_TIME, rows[:, 0], rows[:, 1], Source(artifact.name))
'''
SCHEDULE = '''
"""Forward passes in the order of their microbatches, backward passes in the same: GPipe with the queue turned round."""

from stallwise.physics.sim.pipeline import PassTimes
from stallwise.physics.sim.program import Op, Pass, Program, linear, one_each

NAME = "fifo"
TITLE = "First in, first out"
CHUNKS = 1


def program(devices: int, microbatches: int, chunks: int, times: PassTimes) -> Program:
    """The same order everywhere."""
    orders = [
        [Op(kind, k, d) for kind in (Pass.FORWARD, Pass.BACKWARD) for k in range(microbatches)] for d in range(devices)
    ]
    return linear(NAME, orders, one_each(devices), microbatches)
'''
TRIAL = '''
"""One host thread less."""

from typing import Any, Optional

from stallwise.experiment.change import Change, Undo


class OneThreadLess(Change):
    """`torch.set_num_threads(n - 1)`."""

    name = "one-thread-less"
    title = "one host thread less"
    usual = 0.01
    needs = "torch.set_num_threads"
    risk = "none"

    def refuses(self, scene: Any) -> Optional[str]:
        return None if scene.torch.get_num_threads() > 1 else "there is one thread"

    def apply(self, scene: Any, undo: Undo) -> None:
        before = scene.torch.get_num_threads()
        scene.torch.set_num_threads(before - 1)
        undo.later(lambda: scene.torch.set_num_threads(before))
'''
COMMAND = '''
"""Say how many bytes a file has."""

import click


@click.command(epilog="Example: stallwise size train.log")
@click.argument("file", type=click.Path(exists=True))
def command(file: str) -> None:
    """Say how many bytes a file has."""
    from pathlib import Path

    click.echo(f"{Path(file).stat().st_size} bytes")
'''


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package and what compiles its indexes."""
    place = tmp_path_factory.mktemp("tree")
    for folder in (".ci", "src"):
        shutil.copytree(ROOT / folder, place / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return place


def write(tree: Path, name: str, text: str) -> None:
    """One new file of the package."""
    path = tree / "src" / "stallwise" / name
    assert not path.exists()
    path.write_text(text.lstrip(), encoding="utf-8")


def run(tree: Path, *words: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(tree / "src"), "STALLWISE_CACHE": "off"}
    done = subprocess.run([sys.executable, *words], cwd=tree, capture_output=True, text=True, env=env)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def stallwise(tree: Path, *words: str) -> str:
    return run(tree, "-m", "stallwise", *words)


def test_a_format_is_a_file(tree: Path, tmp_path: Path) -> None:
    write(tree, "readers/lantern.py", FORMAT)
    steps = tmp_path / "steps.lantern"
    steps.write_text("".join(f"lantern {i} {0.2 if i < 60 else 0.4}\n" for i in range(120)), encoding="utf-8")
    assert "Lantern steps" in stallwise(tree, "formats", "lantern")
    assert "steps became 2.00x slower" in stallwise(tree, "diagnose", str(steps))


def test_a_word_is_a_word_in_a_cell(tree: Path) -> None:
    table = tree / "src" / "stallwise" / "evidence" / "catalog" / "run.tsv"
    ask = (
        "-c",
        "from stallwise.readers.text.name import name; n = name(('snapshot flush',), 's'); print(n and n.quantity.name)",
    )
    assert run(tree, *ask).strip() == "None"
    lines = table.read_text(encoding="utf-8").splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("SAVE_TIME\t"))
    lines[place] = lines[place].replace("\tsave time\t", "\tsave time, snapshot flush\t")
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert run(tree, *ask).strip() == "run.save_time"


def test_a_quantity_is_a_line(tree: Path) -> None:
    table = tree / "src" / "stallwise" / "evidence" / "catalog" / "run.tsv"
    line = "TEA_TIME\trun.tea_time\ts\tlower\tTRAIN_LOG\ttime a step waits for tea\ttea_time\ttea time\n"
    table.write_text(table.read_text(encoding="utf-8") + line, encoding="utf-8")
    run(tree, ".ci/index.py")
    assert "TEA_TIME: Quantity" in table.with_suffix(".pyi").read_text(encoding="utf-8")
    assert "tea_time" in stallwise(tree, "facts", "tea")


def test_a_gpu_is_a_table(tree: Path) -> None:
    gpus = "physics/specs/catalog/gpus"
    known = (tree / "src" / "stallwise" / gpus / "l40.toml").read_text(encoding="utf-8")
    table = known.replace('"l40"', '"z9"').replace("NVIDIA L40 48 GB", "Example Z9").replace("NVIDIA L40", "Example Z9")
    write(tree, f"{gpus}/z9.toml", table)
    assert "Z9" in stallwise(tree, "plan", "serve", "--model", "llama-3.1-8b", "--gpu", "z9", "--rate", "1")


def test_a_schedule_is_a_file(tree: Path) -> None:
    write(tree, "physics/sim/schedules/fifo.py", SCHEDULE)
    assert "fifo" in stallwise(
        tree, "plan", "pipeline", "--stages", "4", "--microbatches", "8", "--schedule", "fifo", "--json"
    )


def test_a_trial_is_a_file(tree: Path) -> None:
    write(tree, "experiment/trials/one_thread_less.py", TRIAL)
    assert "one-thread-less" in stallwise(tree, "try", "--list")


def test_a_command_is_a_file(tree: Path, tmp_path: Path) -> None:
    write(tree, "surfaces/cli/size.py", COMMAND)
    (tmp_path / "ten").write_text("0123456789", encoding="utf-8")
    assert stallwise(tree, "size", str(tmp_path / "ten")).strip() == "10 bytes"
    assert "how many bytes" in stallwise(tree, "--help")
