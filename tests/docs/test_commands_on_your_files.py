"""Commands that the pages show on the reader's own files run too: here on stand-ins of the same kind."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import REPO, blocks, inline, mentioned

FIXTURES = REPO / "tests" / "fixtures"
# Servers, rounds that ask questions and live addresses have tests of their own
# (tests/web, tests/mcp, tests/drill, tests/doctor), and so have a process to attach to and trials of a job
# (tests/recorder, tests/cli); a bare name in running text is no command line.
# Pages whose every command is run by tests of their own (tests/docs/test_tutorial.py).
WALKED = {"tutorial.md"}
ELSEWHERE = {"ui", "mcp", "drill", "numerics", "attach", "try"}


def command_lines() -> list[tuple[str, ...]]:
    bodies = [body for page, _, body in blocks("sh") if page.name not in WALKED] + [
        call for page, call in inline() if page.name not in WALKED
    ]
    found = {tuple(words) for body in bodies for words in mentioned(body)}
    whole = {w for w in found if len(w) > 1 or w[0] in ("causes", "formats", "measure")}
    return sorted(w for w in whole if w[0] not in ELSEWHERE and not _unfinished(w))


def _unfinished(words: tuple[str, ...]) -> bool:
    return words[-1] in ("--", "train", "validate") or any(w.startswith("http") or w == "CAUSE" for w in words)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader's folder: every file the pages speak of, from our own fixtures."""
    folder = tmp_path_factory.mktemp("desk")
    example = REPO / "examples" / "traces" / "loader_slow"
    for name in (
        "RUN_DIR",
        "FOLDER",
        "GOOD",
        "BAD",
        "main",
        "branch",
        "before",
        "after",
        "traces",
        "run",
        "runs/earlier",
        "runs/latest",
    ):
        shutil.copytree(example, folder / name)
    for name in ("trace.json.gz", "nvidia_smi.csv"):
        shutil.copy(example / name, folder / name)
    shutil.copy(example / "trace.json.gz", folder / "timeline.json.gz")
    shutil.copy(FIXTURES / "memory" / "oom_fragmentation.pickle.gz", folder / "snapshot.pickle")
    shutil.copy(FIXTURES / "memory" / "oom_fragmentation_message.txt", folder / "oom.log")
    (folder / "details.csv").write_bytes(
        gzip.decompress((FIXTURES / "kernels" / "kernels_details.csv.gz").read_bytes())
    )
    dump = {
        "version": "2.10",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
        "entries": [],
    }
    for rank in range(2):
        (folder / f"nccl_trace_rank_{rank}.json").write_text(json.dumps(dump))
    steps = "".join(f"step {n} loss {3 - n / 100:.3f} step_time {0.2 + n % 3 / 100:.3f}\n" for n in range(40))
    (folder / "train.log").write_text(steps)
    (folder / "train.py").write_text("for step in range(5):\n    print('step', step)\n")
    (folder / "src").mkdir()
    shutil.copy(REPO / "examples" / "slow_checkpoint.py", folder / "src")
    (folder / "stallwise.toml").write_text('[budgets]\nstep_time = "1s"\n')
    record = [{"k": "run", "v": 1, "rank": 0, "world": 1, "t": 0, "env": {}}]
    record += [{"k": "step", "n": n, "t": n * 0.1, "d": 0.1, "s": {"forward": 0.05}} for n in range(30)]
    record += [{"k": "end", "n": 30, "t": 3, "why": "exit"}]
    (folder / "stallwise_try" / "first").mkdir(parents=True)
    shutil.copy(FIXTURES / "trials" / "nano124_eager.json", folder / "stallwise_try" / "first" / "trials.json")
    (folder / "stallwise_run").mkdir()
    lines = "".join(json.dumps(x, separators=(",", ":")) + "\n" for x in record)
    (folder / "stallwise_run" / "rank-00000.jsonl").write_text(lines)
    return folder


@pytest.mark.parametrize("words", command_lines(), ids=" ".join)
def test_a_command_runs_on_files_of_its_kind(words: tuple[str, ...], desk: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(REPO / "src"), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    launched = words[words.index("--") + 1] if "--" in words else "bash"
    if shutil.which(launched, path=env["PATH"]) is None:
        pytest.skip(f"needs {launched}: it is not installed")
    line = " ".join(f"'{w}'" if "*" not in w else w for w in words)
    program = f'"{sys.executable}" -m stallwise {line}'
    done = subprocess.run(
        ["bash", "-c", program],
        cwd=desk,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    # 1 is an answer: a finding, a broken budget, a remark. 2, 3 and 4 are a wrong line in the page or a bug.
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout.strip() or words[0] in ("record",), done.stderr


def test_there_are_such_commands() -> None:
    assert len(command_lines()) > 15
