"""What users install: the wheel holds the whole package and records jobs from a clean environment."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow]
ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "stallwise"
DEPENDENCIES = ("numpy", "click", "msgspec", "torch")  # one module of each folder that may hold installed packages
TRAINS = """
import sys, torch
from torch import nn
torch.set_num_threads(1)
model = nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(int(sys.argv[1])):
    loss = model(torch.ones(4, 8)).sum()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
print("trained")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the tree as it is."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(folder)]
    if importlib.util.find_spec("hatchling") is not None:
        command.append("--no-build-isolation")
    built = subprocess.run([*command, str(ROOT)], capture_output=True, text=True, timeout=300)
    if built.returncode and "hatchling" in built.stderr:
        pytest.skip("needs hatchling to build: pip install hatchling")
    assert built.returncode == 0, built.stderr
    return next(folder.glob("stallwise-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with nothing but the wheel; packages of others are lent to it."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*install, str(wheel)], check=True, timeout=120)
    found = [importlib.util.find_spec(name) for name in DEPENDENCIES]
    lent = {str(Path(spec.origin).parents[1]) for spec in found if spec is not None and spec.origin}
    site = next((home / "lib").glob("python*/site-packages"))
    (site / "lent.pth").write_text("\n".join(sorted(lent)) + "\n")
    return python.parent


def clean(where: Path) -> dict[str, str]:
    """The variables of a user who has nothing but the wheel."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "STALLWISE", "VIRTUAL_ENV"))}
    return {**env, "PATH": f"{where}{os.pathsep}{env.get('PATH', '')}"}


def call(where: Path, *command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=clean(where), capture_output=True, text=True, timeout=180)


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("stallwise/")}
    tree = {
        str(path.relative_to(PACKAGE.parent))
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert tree - inside == set() and inside - tree == set()
    assert "stallwise/recorder/site/sitecustomize.py" in inside


def test_a_plain_python_job_is_run_and_its_end_told(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("print('working')\nraise SystemExit('the data is missing')\n")
    done = call(installed, "stallwise", "run", "-o", "bundle", "--", "python", "job.py", folder=tmp_path)
    assert done.returncode == 1 and "working" in done.stdout, done.stderr
    assert "the data is missing" in done.stdout.split("job failed", 1)[1]
    seen = [json.loads(line) for line in (tmp_path / "bundle" / "processes.jsonl").read_text().splitlines()]
    assert seen and seen[0]["argv"][-1] == "job.py"


def test_the_verbs_come_from_the_wheel_and_record(installed: Path, tmp_path: Path) -> None:
    code = (
        "import stallwise, time\n"
        "print(stallwise.__file__)\n"
        "stallwise.start('bundle')\n"
        "for _ in range(12):\n"
        "    with stallwise.span('work'): time.sleep(0.002)\n"
        "    stallwise.step()\n"
    )
    done = call(installed, "python", "-c", code, folder=tmp_path)
    assert done.returncode == 0 and str(installed.parent) in done.stdout, done.stderr
    assert (tmp_path / "bundle" / "rank-00000.jsonl").read_text().count('"k":"step"') == 12


def test_a_notebook_kernel_records_with_the_wheel(installed: Path, tmp_path: Path) -> None:
    pytest.importorskip("ipykernel", reason="needs ipykernel: pip install ipykernel")
    manager = pytest.importorskip("jupyter_client.manager").KernelManager()
    spec = pytest.importorskip("jupyter_client.kernelspec").KernelSpec
    command = [str(installed / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager._kernel_spec = spec(argv=command, display_name="clean", language="python")
    manager.start_kernel(cwd=str(tmp_path), env=clean(installed))
    client = manager.client()
    client.start_channels()
    printed: list[str] = []
    try:
        client.wait_for_ready(timeout=60)
        for cell in (
            "import stallwise, time\nprint(stallwise.__file__)\nstallwise.start('bundle')",
            "for _ in range(12):\n    with stallwise.span('my cell'): time.sleep(0.002)\n    stallwise.step()",
            "stallwise.stop()\nstallwise.diagnose('bundle')",  # shows itself
        ):
            shown = client.execute_interactive(
                cell, timeout=60, output_hook=lambda m: printed.append(str(m["content"]))
            )
            assert shown["content"]["status"] == "ok", printed[-1]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    said = "".join(printed)
    assert str(installed.parent) in said and "text/html" in said
    assert (tmp_path / "bundle" / "rank-00000.jsonl").read_text().count('"k":"step"') == 12


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs CPU PyTorch: pip install torch")
def test_a_pytorch_job_is_recorded_watched_and_diagnosed(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS)
    done = call(installed, "stallwise", "record", "-o", "bundle", "--", "python", "train.py", "60", folder=tmp_path)
    assert done.returncode == 0 and done.stdout == "trained\n", done.stderr
    lines = (tmp_path / "bundle" / "rank-00000.jsonl").read_text()
    assert lines.count('"k":"step"') == 60 and '"k":"window"' in lines
    assert (tmp_path / "bundle" / "rank-00000" / "trace_full.json.gz").stat().st_size > 1000
    watched = call(installed, "stallwise", "watch", "--once", "bundle", folder=tmp_path)
    assert watched.returncode == 0 and "step 59" in watched.stdout, watched.stderr
    done = call(installed, "stallwise", "run", "-o", "again", "--", "python", "train.py", "30", folder=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("trained\n") and "internal error" not in done.stderr, (
        done.stderr
    )
    assert len(done.stdout) > 200  # the verdict, whatever it is


WALK = """
import contextlib, io, json, sys
import stallwise
from stallwise.surfaces.cli import console

told = {"from": stallwise.__file__}
for words in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["stallwise", *words]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            console()
            code = 0
        except SystemExit as end:
            code = end.code
    told[" ".join(words)] = [code, out.getvalue(), err.getvalue()]
with contextlib.redirect_stdout(io.StringIO()):
    told["plan()"] = repr(stallwise.plan("llama-3-8b", "8xh100", seq=4096, global_batch=64))
    told["simulate()"] = stallwise.simulate(stages=4, microbatches=8, schedule="1f1b")["bubble_step_share"]
    told["diagnose()"], told["compare()"] = repr(stallwise.diagnose("slow.log")), repr(stallwise.compare("slow.log", "fast.log"))
print(json.dumps(told))
"""
LINE = " iteration {n}/ 500 | elapsed time per iteration (ms): {ms}.0 | global batch size: 256 | lm loss: 2.0E+00 |\n"
VERBS = (  # the command, and a word of its answer
    ("--version", "."), ("demo", "input-starved"), ("formats", "$ "), ("causes", "launch-bound"), ("explain input-starved", "## Fix"),
    ("diagnose slow.log --json", '"state"'), ("diagnose loss-is-nan.txt", "loss"), ("compare slow.log fast.log", "faster"),
    ("plan formula pipeline-bubble", "bubble"), ("plan memory --model llama-3-8b --cluster 8xh100", "GB"),
    ("plan models", "llama"), ("whatif TRACE", "step"), ("drill rounds", "round"), ("completion bash", "complete"),
    ("try --help", "Usage"), ("history", ""), ("facts --template", "symptom"), ("lint slow.py", ""),
)  # fmt: skip


def test_every_verb_answers_from_a_wheel_in_an_empty_home(installed: Path, tmp_path: Path) -> None:
    for name, ms in (("slow", 200), ("fast", 120)):
        (tmp_path / f"{name}.log").write_text("".join(LINE.format(n=n, ms=ms) for n in range(1, 60)))
    (tmp_path / "loss-is-nan.txt").write_text("Our loss is nan after step 900 since we moved to fp16.\n")
    (tmp_path / "slow.py").write_text(TRAINS)
    (tmp_path / "home").mkdir()
    trace = next((installed.parent / "lib").glob("python*/site-packages/stallwise/surfaces/cli/_demo/*/trace.json.gz"))
    asked = [verb.replace("TRACE", str(trace)).split() for verb, _ in VERBS]
    env = {**clean(installed), "HOME": str(tmp_path / "home"), "COLUMNS": "120"}
    done = subprocess.run(
        [str(installed / "python"), "-c", WALK],
        input=json.dumps(asked), cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert str(installed.parent) in told["from"]
    for (verb, wanted), words in zip(VERBS, asked, strict=True):
        code, out, err = told[" ".join(words)]
        assert code == 0 and wanted in out and "internal error" not in err, (verb, code, out[-400:], err[-400:])
    assert "40.0% better" in told["compare()"] and 0 < told["simulate()"] < 1 and told["plan()"].startswith("<Plan")


def test_the_page_and_the_tools_of_a_wheel_answer(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "run.log").write_text("".join(LINE.format(n=n, ms=200) for n in range(1, 60)))
    env = {**clean(installed), "HOME": str(tmp_path / "home"), "PYTHONUNBUFFERED": "1"}
    page = subprocess.Popen(
        [str(installed / "stallwise"), "ui", str(tmp_path), "--no-browser"], env=env, stdout=subprocess.PIPE, text=True
    )
    try:
        assert page.stdout is not None
        address = re.search(r"http://127\.0\.0\.1:\d+\S*", page.stdout.readline())
        assert address is not None
        with urllib.request.urlopen(address[0], timeout=60) as answer:
            assert answer.status == 200 and b"<html" in answer.read().lower()
    finally:
        page.terminate()
        page.wait(30)
    if importlib.util.find_spec("mcp") is None:
        return
    hello = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    server = subprocess.Popen(
        [str(installed / "stallwise"), "mcp", str(tmp_path)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    try:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(ask) + "\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "stallwise"
    finally:
        server.kill()
        server.wait(30)
