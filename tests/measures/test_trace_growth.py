"""Work grows with the length of a trace and no faster. It is counted in calls, so that no busy machine changes the answer."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from stallwise.doctor.measures import measure_timeline, replayed_together
from stallwise.evidence import gc_pause
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.timeline import Timeline
from stallwise.readers.native import torch_trace

LAUNCHES = 40  # a step
STEP_US = 1000
STEPS = 25
LINEAR, QUADRATIC = 2.0, 4.0  # how the work for a doubling grows when that is doubled


def events(steps: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for step in range(steps):
        begin = step * STEP_US
        found.append(of("user_annotation", f"ProfilerStep#{step}", begin, STEP_US - 10))
        for launch in range(LAUNCHES):
            at, number = begin + 20 * launch + 10, step * LAUNCHES + launch
            args = {"External id": number, "Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}
            ids = {"External id": number, "correlation": number}
            found.append(of("cpu_op", ("aten::mm", "aten::add", "aten::softmax")[launch % 3], at, 12, args))
            found.append(of("cuda_runtime", "cudaLaunchKernel", at + 2, 4, ids))
            found.append(of("kernel", f"kernel_{launch % 7}", at + 9, 14, {**ids, "grid": [8, 1, 1]}))
        found.append(of("cuda_runtime", "cudaStreamSynchronize", begin + 900, 20, {"correlation": -1}))
    return found


def of(category: str, name: str, at: int, lasts: int, args: dict[str, Any] | None = None) -> dict[str, Any]:
    thread = 7 if category == "kernel" else 1
    process = 0 if category == "kernel" else 1
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": process,
        "tid": thread,
        "ts": at,
        "dur": lasts,
        "args": args or {},
    }


def calls(folder: Path, steps: int) -> int:
    """Of functions, Python's and C's, from the file to the last measure."""
    path = folder / f"{steps}.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events(steps)}))
    seen = 0

    def count(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal seen
        seen += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        timeline = next(x for x in torch_trace.read(Artifact(path.name, path)) if isinstance(x, Timeline))
        assert len(timeline) == len(events(steps))
        assert list(measure_timeline(timeline))
    finally:
        sys.setprofile(None)
    return seen


def test_work_grows_with_the_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        replayed_together, "MOST_PLAYED", 0
    )  # short traces are played more often, as far as time allows
    calls(tmp_path, 2)  # what is loaded once
    one, two, four = (calls(tmp_path, STEPS * times) for times in (1, 2, 4))
    assert two > one
    assert (four - two) / (two - one) < (LINEAR + QUADRATIC) / 2


def test_the_collector_is_as_it_was() -> None:
    assert gc.isenabled()
    with pytest.raises(ValueError, match="inside"), gc_pause.paused():
        with gc_pause.paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ValueError("inside")
    assert gc.isenabled()
