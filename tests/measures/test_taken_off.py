"""What recording cost is taken off a step only where that can be told from the steps' own unrest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.timeline import Timeline
from stallwise.measures._without_profiler import Cleaned, without_profiler
from stallwise.readers.native import torch_trace

OPERATORS, STEPS = 400, 5


LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def cleaned(place: Path, pause_us: float, waits_us: tuple[float, ...] = ()) -> Cleaned:
    """The same steps without their profiler."""
    found = without_profiler(recorded(place, pause_us, waits_us))
    assert found is not None
    return found


def recorded(place: Path, pause_us: float, waits_us: tuple[float, ...] = (), launch_us: float = 9.0) -> Timeline:
    """Steps of small operators, each with a launch and a kernel; before the last of the steps the host pauses.

    Each step may begin with a wait for a batch of another process.
    """
    events: list[dict[str, Any]] = []
    at, number = 0.0, 0

    def add(name: str, cat: str, ts: float, dur: float, tid: int, **args: Any) -> None:
        pid = 0 if cat == "kernel" else 100
        events.append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args})

    for step in range(STEPS):
        begin = at
        at += pause_us if step == STEPS - 1 else 0.0
        if waits_us:
            add(LOADER, "user_annotation", at, waits_us[step], 100)
            at += waits_us[step] + 5.0
        for _ in range(OPERATORS):
            number += 1
            add("aten::mul", "cpu_op", at, 18.0, 100, **{"External id": number})
            add("cudaLaunchKernel", "cuda_runtime", at + 6.0, launch_us, 100, correlation=number)
            add("elementwise_kernel", "kernel", at + 20.0, 3.0, 7, correlation=number, stream=7, device=0)
            at += 24.0
        add(f"ProfilerStep#{step}", "user_annotation", begin, at - begin, 100)
    path = place / f"trace-{pause_us:.0f}-{len(waits_us)}.json"
    card = [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150e9, "numSms": 132}]
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": card, "traceEvents": events}))
    return next(x for x in torch_trace.read(Artifact(path.name, path)) if isinstance(x, Timeline))


def test_even_steps_are_told_without_their_profiler(tmp_path: Path) -> None:
    even = cleaned(tmp_path, 0.0)
    assert even.clean_step_s < 0.9 * even.traced_step_s


def test_steps_that_differ_by_more_than_recording_costs_are_told_as_traced(tmp_path: Path) -> None:
    uneven = cleaned(tmp_path, 200_000.0)
    assert uneven.clean_step_s == uneven.traced_step_s
    assert uneven.low_s < uneven.clean_step_s


def test_a_host_that_waits_for_batches_only_waits_longer_without_its_profiler(tmp_path: Path) -> None:
    fed = cleaned(tmp_path, 0.0, (5000.0, 50.0, 50.0, 15_000.0, 50.0))
    assert fed.clean_step_s > 0.93 * fed.traced_step_s


def test_batches_that_were_ready_hold_nobody_up_but_may_hold_up_a_faster_host(tmp_path: Path) -> None:
    ready, alone = cleaned(tmp_path, 0.0, (50.0,) * STEPS), cleaned(tmp_path, 0.0)
    assert ready.clean_step_s - alone.clean_step_s < 0.02 * alone.clean_step_s
    assert ready.high_s > ready.traced_step_s > alone.high_s / 1.1


def test_launches_too_short_to_be_any_are_captured_and_nothing_is_taken_off(tmp_path: Path) -> None:
    assert without_profiler(recorded(tmp_path, 0.0, launch_us=0.6)) is None
