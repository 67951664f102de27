"""What is seen of a job from outside: its counting lines, and the stacks of a process that nobody prepared."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.evidence.catalog import run, stages
from stallwise.recorder import attach, schema
from stallwise.recorder.line_clock import LineClock
from stallwise.recorder.stacks_in_trace import put_stacks_in
from stallwise.render.text import to_text

BUSY = """
import json, time
def write_metrics():
    json.dumps(list(range(3000)))
until = time.time() + 60
print("ready", flush=True)
while time.time() < until:
    write_metrics()
"""


def clocked(lines: list[tuple[float, str]]) -> LineClock:
    now = [0.0]
    clock = LineClock(lambda: now[0])
    for t, line in lines:
        now[0] = t
        clock.feed(line.encode())
    return clock


@pytest.mark.parametrize(
    ("shape", "stride"),
    [
        ("iteration {n} residual 0.0{n}31\n", 10),
        ("[{n}/900] loss=1.{n}e-3\n", 1),
        ("\r 10%|### | {n}/70 [00:02<00:03, 14.17it/s]", 2),
        ("epoch 3 batch {n} of 900, lr 0.001\n", 50),
    ],
)
def test_a_line_that_counts_tells_the_step(shape: str, stride: int) -> None:
    steps = clocked([(0.5 * k, shape.format(n=k * stride)) for k in range(1, 20)] + [(99.0, "\n")]).steps()
    assert steps is not None
    assert steps["s"][3] == pytest.approx(0.5 / stride) and steps["n"][1] - steps["n"][0] == stride


@pytest.mark.parametrize("shape", ["took {f} s\n", "loss {f}\n", "port 8080 is open\n", "request {r} done\n"])
def test_measurements_and_constants_count_nothing(shape: str) -> None:
    lines = [(0.5 * k, shape.format(f=0.37 * k, r=(k * 7919) % 1000)) for k in range(40)]
    assert clocked(lines).steps() is None


def test_an_epoch_that_begins_again_is_no_step_of_its_own() -> None:
    steps = clocked([(0.1 * k, f"batch {k % 10} of 10\n") for k in range(60)]).steps()
    assert steps is not None and max(steps["s"]) == pytest.approx(0.1)


def test_steps_of_the_output_are_used_where_the_recorder_saw_none(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text("import time\nfor n in range(30):\n    time.sleep(0.01)\n    print('round', n, flush=True)\n")
    record = [sys.executable, "-m", "stallwise", "record", "-o", str(tmp_path / "b"), "--", sys.executable, str(script)]
    subprocess.run(record, check=True, capture_output=True, timeout=60)
    evidence = diagnose(str(tmp_path / "b")).evidence
    # Two lines that come while the machine is busy are read at once; what they took together is true all the same.
    assert float(evidence.series(run.STEP_TIME)[0].values.mean()) >= 0.009
    assert "no process of the job imported torch or jax" in diagnose(str(tmp_path / "b")).subject


def test_a_job_without_a_framework_is_recorded_by_the_verbs_it_uses(tmp_path: Path) -> None:
    script = tmp_path / "plain.py"
    script.write_text(
        "import time, stallwise\nfor n in range(30):\n    with stallwise.span('read the shards'):\n        time.sleep(0.01)\n"
        "    stallwise.step()\n"
    )
    record = [sys.executable, "-m", "stallwise", "record", "-o", str(tmp_path / "b"), "--", sys.executable, str(script)]
    done = subprocess.run(record, check=True, capture_output=True, timeout=60, text=True)
    assert "no trace: no process of the job imported torch or jax" in done.stderr
    diagnosis = diagnose(str(tmp_path / "b"))
    assert float(diagnosis.evidence.series(run.STEP_TIME)[0].values.min()) >= 0.009
    assert "read the shards" in to_text(diagnosis)


def test_py_spys_lines_become_the_recorders() -> None:
    raw = (
        "thread (4711): MainThread;<module> (/home/me/run/train.py:41);log (/home/me/run/train.py:8);"
        "dumps (/usr/lib/python3.11/json/__init__.py:231) 30\n"
        "thread (4712): pin_memory;loop (/x/site-packages/torch/utils/data/_utils/pin_memory.py:3) 99\n"
        "torn line\n"
    )
    own = ("lib/json/__init__.py:231 dumps", "run/train.py:8 log", "run/train.py:41 <module>")
    assert attach.main_threads(raw, 4711) == {4711: {own: 30}}
    below = "".join(f'process 4700:"torchrun";process 4711:"python";{row}\n' for row in raw.splitlines()[:2])
    assert attach.main_threads(below, 4700) == {4711: {own: 30}}


@pytest.mark.skipif(attach.spy() is None, reason="needs py-spy: pip install 'stallwise[attach]'")
def test_a_running_process_is_looked_at_and_runs_on(tmp_path: Path) -> None:
    (tmp_path / "busy.py").write_text(BUSY)
    job = subprocess.Popen([sys.executable, str(tmp_path / "busy.py")], stdout=subprocess.PIPE)
    try:
        assert job.stdout is not None and job.stdout.readline()
        command = [
            sys.executable,
            "-m",
            "stallwise",
            "attach",
            str(job.pid),
            "--for",
            "2s",
            "-o",
            str(tmp_path / "look"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if "could not look" in done.stdout:
            pytest.skip("this user may not read other processes' memory")
        assert done.returncode == 0, done.stderr
        assert "busy.py:4 write_metrics" in done.stdout and "cores busy" in done.stdout
        assert job.poll() is None
        evidence = diagnose(str(tmp_path / "look")).evidence
        assert evidence.text(stages.SIDE_LINE).endswith(("busy.py:4 write_metrics", "busy.py:8 <module>"))
    finally:
        job.kill()
        job.wait()


def test_a_process_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stallwise", "attach", "99999999"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2 and "there is no process 99999999" in done.stderr


def test_without_py_spy_the_rest_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "spy", lambda: None)
    seen = attach.attach(os.getpid(), str(tmp_path), 1.0)
    assert "stallwise[attach]" in seen.why_no_stacks and seen.memory[-1][1] > 1e6
    assert "stallwise[attach]" in diagnose(str(tmp_path)).subject


def test_sampled_stacks_become_frames_of_the_trace(tmp_path: Path) -> None:
    """A record with a window of 40 ms in which one line of the user's holds the thread, and a trace on the same clock."""
    base_ns, from_s = 1_790_000_000_000_000_000, 1_790_000_000.0 + 5.0
    head = f'{{"schemaVersion": 1, "baseTimeNanoseconds": {base_ns}, "traceEvents": ['
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 5e6 + 1.0, "dur": 2.0}
    trace = tmp_path / "rank-00000" / schema.TRACE_FILES[schema.FULL_WINDOW]
    trace.parent.mkdir()
    trace.write_bytes(gzip.compress((head + json.dumps(event) + "]}").encode()))
    places = [
        "lib/json/encoder.py:1 encode",
        "train.py:8 log",
        "train.py:41 <module>",
        "lib/torch/x.py:1 forward",
        "train.py:40 <module>",
    ]
    lines = [
        {"k": "run", "v": 2, "rank": 0, "world": 1, "pid": 7, "t": from_s, "env": {}},
        *({"k": "line", "id": at, "at": text} for at, text in enumerate(places)),
        {"k": "frames", "id": 0, "lines": [0, 1, 2]},
        {"k": "frames", "id": 1, "lines": [3, 4]},
        {"k": "samples", "t": from_s, "ms": [0, 10, 20, 30, 40], "id": [0, 0, 0, 1, 1], "stage": [None] * 5},
        {"k": "window", "window": "full", "first": 1, "last": 4, "file": trace.name, "from": from_s - 1, "to": from_s + 1,
         "start_s": 0.0, "stop_s": 0.0},
    ]  # fmt: skip
    (tmp_path / "rank-00000.jsonl").write_text(
        "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    )
    put_stacks_in(str(tmp_path))
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    frames = {e["name"]: (e["ts"], e["dur"]) for e in events if e.get("cat") == "python_function"}
    assert events[-1] == event and set(frames) == {
        "train.py(8): log",
        "train.py(41): <module>",
        "train.py(40): <module>",
    }
    assert frames["train.py(8): log"][0] == pytest.approx(5e6, abs=1.0)
    assert frames["train.py(8): log"][1] == pytest.approx(30e3, abs=1.0)


def test_a_trace_of_another_kind_stays_as_it_is(tmp_path: Path) -> None:
    trace = tmp_path / "rank-00000" / schema.TRACE_FILES[schema.FULL_WINDOW]
    trace.parent.mkdir()
    trace.write_bytes(b"not gzip at all")
    (tmp_path / "rank-00000.jsonl").write_text('{"k":"window","file":"trace_full.json.gz"}\n{"k":"frames"\n')
    put_stacks_in(str(tmp_path))
    assert trace.read_bytes() == b"not gzip at all"


def test_spans_and_gauges_stand_in_the_report_by_name(tmp_path: Path) -> None:
    code = (
        "import stallwise, time\nstallwise.start('b')\n"
        "for n in range(30):\n"
        "    with stallwise.span('read the shards'): time.sleep(0.002)\n"
        "    stallwise.gauge('temperature', 0.5)\n    stallwise.step()\nstallwise.stop()\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)
    diagnosis = diagnose(str(tmp_path / "b"))
    assert diagnosis.ledger is not None and 0.002 < diagnosis.ledger.spans["read the shards"] < 0.1
    text = to_text(diagnosis)
    assert "read the shards" in text and "temperature = 0.5" in text and "GPU" not in text.splitlines()[2]


def test_a_folder_that_is_full_of_devices_is_no_trap(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    (tmp_path / "rank-00000.jsonl").symlink_to("/dev/full")
    began = time.monotonic()
    put_stacks_in(str(tmp_path))
    assert schema.files_in(str(tmp_path)) == [] and time.monotonic() - began < 5
    shutil.rmtree(tmp_path)
