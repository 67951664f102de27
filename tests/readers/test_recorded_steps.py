"""What a record tells of its usual step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.evidence.catalog import job

AHEAD_S, WAITS_S, ON_DEVICE = 0.002, 0.149, {"forward": 0.0015, "backward": 0.0024, "optimizer": 0.0011}
EVERY = 50  # steps after which the loop prints its loss, and waits for it


def write(folder: Path, device: bool) -> str:
    """The host ends 49 of 50 steps early; the fiftieth waits for all of them. The device takes 5 ms each."""
    lines: list[dict[str, object]] = [
        {"k": "run", "v": 2, "rank": 0, "world": 1, "pid": 7, "host": "h", "t": 0.0, "env": {}},
        {"k": "window", "window": "full", "first": 17, "last": 20, "file": "x", "start_s": 0.1, "stop_s": 0.2},
    ]
    now = 1000.0
    for n in range(400):
        took = WAITS_S if n % EVERY == EVERY - 1 else AHEAD_S
        now += took
        traced = {"window": "full"} if 17 <= n <= 20 else {}
        lines.append({"k": "step", "n": n, "t": now, "d": took, "s": {"forward": 0.001}, "b": "optimizer", **traced})
        if device:
            lines.append({"k": "gpu", "n": n, "g": ON_DEVICE, "of": 1})
    path = folder / "rank-00000.jsonl"
    path.write_text("\n".join(json.dumps(line, separators=(",", ":")) for line in lines) + "\n")
    return str(path)


def test_a_usual_step_is_not_shorter_than_its_work_on_the_device(tmp_path: Path) -> None:
    (clean,) = diagnose(write(tmp_path, device=True)).evidence.all(job.UNTRACED_STEP)
    assert clean.value == pytest.approx(sum(ON_DEVICE.values()))


def test_where_the_device_was_not_asked_the_host_tells(tmp_path: Path) -> None:
    (clean,) = diagnose(write(tmp_path, device=False)).evidence.all(job.UNTRACED_STEP)
    assert clean.value == pytest.approx(AHEAD_S)
