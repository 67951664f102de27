"""Several outputs in one file: each is read by its own reader, whatever stands beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.gather import gather
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Evidence
from stallwise.readers.shapes.pasted import files_in, parts_of

CARD = """timestamp, index, utilization.gpu [%], clocks.current.sm [MHz], power.draw [W]
2026/11/16 07:00:01.000, 0, 99 %, 840 MHz, 310.00 W
2026/11/16 07:00:02.000, 0, 99 %, 850 MHz, 312.00 W
"""
PAGE = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m"} 64
vllm:num_requests_waiting{model_name="m"} 210
"""
LOG = "".join(f"step {n} loss {2.3 - n / 100:.2f} step_time 1.9{n} s\n" for n in range(4))
TOLD = "Training on this box got slow this morning, 1.9 s a step instead of 1.1 s.\n"


def read(tmp_path: Path, text: str) -> Evidence:
    path = tmp_path / "pasted.txt"
    path.write_text(text)
    return gather([str(path)], cache=False, workers=1)


@pytest.mark.parametrize("prompt", ["$ {}", "me@node-7:~/run$ {}", "(env) root@node-7:/# {}", ""], ids=lambda p: p[:8])
def test_each_output_is_read_by_its_own_reader(tmp_path: Path, prompt: str) -> None:
    commands = ("nvidia-smi --query-gpu=...", "curl -s localhost:8000/metrics", "tail -4 train.log")
    parts = zip(commands, (CARD, PAGE, LOG), strict=True)
    text = TOLD + "\n" + "\n".join((prompt.format(command) + "\n" if prompt else "") + out for command, out in parts)
    found = read(tmp_path, text)
    assert {"nvidia-smi CSV", "engine metrics"} <= set(found.formats)
    assert {"gpu.samples", "engine_samples"} <= {table.kind for table in found.tables}
    assert len(found.facts["run.step_time"]) + len([s for s in found.all_series if s.quantity.name == "run.step_time"])
    card = next(table for table in found.tables if table.kind == "gpu.samples")
    line = text.splitlines().index(CARD.splitlines()[1]) + 1
    assert card.source.where == f"lines {line}-{line + 1}"  # as in the file


def test_one_output_with_empty_lines_stays_whole() -> None:
    rows = CARD.splitlines(keepends=True)
    artifact = Artifact("smi.csv", content=("".join(rows[:2]) + "\n" + rows[0] + rows[2]).encode())
    assert parts_of(artifact, lambda part: frozenset({"nvidia-smi CSV"})) == []
    assert parts_of(artifact, lambda part: frozenset()) == []


def test_a_damaged_output_silences_no_other(tmp_path: Path) -> None:
    found = read(tmp_path, f"{CARD}\n$ curl -s localhost:8000/metrics\nvllm:num_requests_running oh no\n")
    assert "gpu.samples" in {table.kind for table in found.tables}
    assert any("cut" in note.text and note.lost for note in found.notes)


def test_blocks_under_the_names_of_files_are_those_files() -> None:
    page = "**a.csv**\n\n```\nx,y\n1,2\n```\n\n### `b.log`\n```\nstep 1\n```\n"
    found = files_in(Artifact("issue.md", content=page.encode()))
    assert [(f.name, f.text()) for f in found] == [("issue.md!a.csv", "x,y\n1,2\n"), ("issue.md!b.log", "step 1\n")]


def test_a_list_of_names_is_no_list_of_files() -> None:
    assert files_in(Artifact("ls.txt", content=b"a.log\nb.log\nc.log and more\n")) == []
