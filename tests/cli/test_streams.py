"""Every verb ends in order where its output cannot go: a full disk, a reader that has left, streams that were never open."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRACE = "examples/traces/loader_slow"
FULL = Path("/dev/full")
# One call of every verb that answers and ends; servers, jobs and questions to the user have no answer that could be cut.
CALLS = {
    "--help": "--help",
    "--version": "--version",
    "causes": "causes --json",
    "check": "check --example",
    "compare": f"compare {TRACE} {TRACE}",
    "completion": "completion bash",
    "diagnose": "diagnose --fact mfu=0.22 mfu.before=0.48 gpus=512",
    "drill": "drill export --anki",
    "explain": "explain occupancy",
    "facts": "facts",
    "formats": "formats",
    "history": "history",
    "kernels": "kernels tests/fixtures/kernels/kernels_details.csv.gz",
    "lint": "lint examples/slow_checkpoint.py",
    "plan": "plan collective allreduce 2GB --gpus 512",
    "try": "try --list",
    "watch": "watch {folder} --once",
    "whatif": f"whatif {TRACE}/trace.json.gz --graphs",
}
NO_ANSWER = {"accuracy", "attach", "demo", "mcp", "measure", "numerics", "record", "run", "ui"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recorded job that still runs."""
    lines = [{"k": "run", "v": 1, "rank": 0, "world": 1, "t": 0, "env": {}}]
    lines += [{"k": "step", "n": n, "t": n * 0.1, "d": 0.1, "s": {"forward": 0.05}} for n in range(30)]
    (tmp_path / "rank-00000.jsonl").write_text("".join(json.dumps(x, separators=(",", ":")) + "\n" for x in lines))
    return tmp_path


def called(call: str, folder: Path, **streams: object) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "STALLWISE_DEBUG", "PYTHONUNBUFFERED")}
    words = call.format(folder=folder).split()
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(
        [sys.executable, "-m", "stallwise", *words],
        cwd=ROOT, env={**env, "PYTHONPATH": str(ROOT / "src")}, stdin=subprocess.DEVNULL, text=True, timeout=120, **streams,  # type: ignore[call-overload]
    )  # fmt: skip


@contextmanager
def nobody_reads() -> Iterator[int]:
    """The end of a pipe whose reader has left."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


def in_order(said: str) -> bool:
    return not re.search(r"Traceback|internal error|Exception ignored|Errno|BrokenPipe", said)


def test_every_verb_is_walked() -> None:
    verbs = {p.stem for p in (ROOT / "src/stallwise/surfaces/cli").glob("*.py") if not p.stem.startswith("_")}
    assert verbs == {v for v in CALLS if not v.startswith("-")} | NO_ANSWER


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("verb", CALLS)
def test_a_full_disk_is_told_in_a_line_and_a_reader_that_left_in_none(verb: str, folder: Path) -> None:
    with FULL.open("w") as full:
        done = called(CALLS[verb], folder, stdout=full)
    assert done.returncode == 3 and in_order(done.stderr), (done.returncode, done.stderr)
    assert "stallwise: cannot write the answer: No space left on device" in done.stderr
    with nobody_reads() as pipe:
        done = called(CALLS[verb], folder, stdout=pipe)
    assert done.returncode in (0, 1) and in_order(done.stderr), (done.returncode, done.stderr)


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("width", ["", "60"])
def test_a_library_that_tries_the_stream_first_hides_nothing(width: str) -> None:
    """Unbuffered, the empty text with which click looks at a stream is what fails, and click keeps that to itself."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1", "COLUMNS": width}
    with FULL.open("w") as full:
        command = [sys.executable, "-m", "stallwise", "facts"]
        done = subprocess.run(command, env=env, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 3 and in_order(done.stderr) and "cannot write the answer" in done.stderr


@pytest.mark.parametrize(("limit", "code"), [("any", 1), ("host-sync", 0)])
def test_who_stops_reading_still_gets_the_exit_code(limit: str, code: int, tmp_path: Path) -> None:
    """`stallwise diagnose ... --fail-on any | head -1` under pipefail: neither a pass nor a failure may be made up."""
    with nobody_reads() as pipe:
        done = called(f"diagnose {TRACE} --no-history --fail-on {limit}", tmp_path, stdout=pipe)
    assert done.returncode == code and in_order(done.stderr)


def test_a_watch_that_nobody_reads_ends(folder: Path) -> None:
    with nobody_reads() as pipe:
        start = time.monotonic()
        done = called("watch {folder} --every 60s", folder, stdout=pipe)
    assert done.returncode == 0 and in_order(done.stderr) and time.monotonic() - start < 60


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_remarks_that_cannot_be_written_change_nothing(tmp_path: Path) -> None:
    with FULL.open("w") as full:
        done = called("diagnose nosuch.json", tmp_path, stderr=full)
        assert done.returncode == 2
        done = called(f"diagnose {TRACE} --no-history --fail-on any", tmp_path, stderr=full)
    assert done.returncode == 1 and "input" in done.stdout


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_were_never_open(closed: str, tmp_path: Path) -> None:
    """And the report that is written gets no descriptor that the system takes for standard output."""
    report = tmp_path / "report.json"
    line = f"'{sys.executable}' -m stallwise diagnose {TRACE} --no-history --fail-on any -o {report} {closed}"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(["bash", "-c", line], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and in_order(done.stderr)
    assert report.read_text().startswith("{") and report.read_text().endswith("}\n")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "call",
    [
        f"diagnose {TRACE} --no-history -o /dev/full", f"compare {TRACE} {TRACE} -o /dev/full", "drill export --anki -o /dev/full",
        "plan pipeline --stages 4 --microbatches 8 --svg /dev/full",
        "plan calibrate --model llama-3.1-8b --cluster 8xh100 --step-time 9s -o /dev/full",
        f"check {TRACE} --config {{folder}}/stallwise.toml --junit /dev/full",
    ],
)  # fmt: skip
def test_a_report_that_finds_no_room_is_named(call: str, tmp_path: Path) -> None:
    (tmp_path / "stallwise.toml").write_text('[budgets]\nstep_time = "1s"\n')
    done = called(call, tmp_path)
    assert done.returncode == 3 and "cannot write /dev/full: No space left on device" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("diagnose big.json --fail-on nosuch", "--fail-on does not know 'nosuch'"),
        ("diagnose big.json --fail-on input-straved", "input-starved"),
        ("check big.json --config {folder}/stallwise.toml", "--fail-on does not know 'nosuch'"),
        ("compare big.json big.json --fail-on nosuch", "nosuch"),
        ("diagnose big.json -o report.docx", "no answer ends in '.docx'"),
        ("diagnose big.json -o nosuch/report.html", "there is no folder nosuch"),
        ("compare big.json big.json -o trend.docx", "no answer ends in '.docx'"),
        ("check big.json --junit nosuch/budgets.xml", "there is no folder nosuch"),
        ("kernels big.json -o nosuch/k.html", "there is no folder nosuch"),
        ("whatif {folder}/big.json -o k.docx", "no answer ends in '.docx'"),
        ("try --html nosuch/try.html -- python train.py", "there is no folder nosuch"),
        ("accuracy --from-trials {folder} -o nosuch/rows.csv", "there is no folder nosuch"),
        ("plan train --model llama-3.1-8b --cluster 8xh100 -o plan.docx", "no answer ends in '.docx'"),
        ("diagnose big.json --max-unpacked twelve", "twelve"),
        ("diagnose big.json --for ever", "ever"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_refused_before_anything_is_read(
    call: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from stallwise.doctor import gather
    from stallwise.errors import BadRequest
    from stallwise.surfaces.cli import main

    (tmp_path / "stallwise.toml").write_text('[check]\nfail_on = "nosuch"\n')
    (tmp_path / "big.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gather, "find", lambda *a, **k: pytest.fail("the work began"))
    result = CliRunner().invoke(main, call.format(folder=tmp_path).split())
    assert isinstance(result.exception, BadRequest) and result.exception.exit_code == 2, (
        result.output,
        result.exception,
    )
    assert said in f"{result.exception.problem} {result.exception.hint}"
