"""What recording cost is taken off a step only where that can be told from the steps' own unrest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from stallwise.doctor.measures._without_profiler import Cleaned, without_profiler
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.timeline import Timeline
from stallwise.readers.native import torch_trace

OPERATORS, STEPS = 400, 5


LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def cleaned(place: Path, pause_us: float, waits_us: tuple[float, ...] = ()) -> Cleaned:
    """The same steps without their profiler."""
    found = without_profiler(recorded(place, pause_us, waits_us))
    assert found is not None
    return found


def recorded(
    place: Path,
    pause_us: float,
    waits_us: tuple[float, ...] = (),
    launch_us: float = 9.0,
    made_us: tuple[float, ...] = (),
    operators: int = OPERATORS,
    idle_us: float = 0.0,
) -> Timeline:
    """Steps of small operators, each with a launch and a kernel; before the last of the steps the host pauses.

    Each step may begin with a wait for a batch of another process, whose next one is pinned so long after it was taken; and the host
    may do something in every step that nobody recorded.
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
            if made_us:
                add("cudaPointerGetAttributes", "cuda_runtime", at + made_us[step], 2.0, 300)
            at += waits_us[step] + 5.0
        at += idle_us
        for _ in range(operators):
            number += 1
            add("aten::mul", "cpu_op", at, 18.0, 100, **{"External id": number})
            add("cudaLaunchKernel", "cuda_runtime", at + 6.0, launch_us, 100, correlation=number)
            add("elementwise_kernel", "kernel", at + 20.0, 3.0, 7, correlation=number, stream=7, device=0)
            at += 24.0
        add(f"ProfilerStep#{step}", "user_annotation", begin, at - begin, 100)
    path = place / f"trace-{pause_us:.0f}-{len(waits_us)}-{len(made_us)}.json"
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


def test_batches_come_no_faster_than_they_were_seen_to_be_made(tmp_path: Path) -> None:
    def fed(*made_us: float) -> Cleaned:
        found = without_profiler(recorded(tmp_path, 0.0, (50.0,) * STEPS, made_us=made_us))
        assert found is not None
        return found

    at_once, alone = fed(*(500.0,) * STEPS), cleaned(tmp_path, 0.0, (50.0,) * STEPS)
    assert abs(at_once.clean_step_s / alone.clean_step_s - 1) < 0.01
    # One at a time, each of which takes most of a step: no host gets more of them.
    slowly = fed(*(8500.0,) * STEPS)
    assert abs(slowly.clean_step_s - 8.5e-3) < 0.1e-3
    assert slowly.clean_step_s > 1.1 * alone.clean_step_s
    # Others may have stood by, so that the range still holds a host that never waits; and moments that fit no making say nothing.
    assert slowly.low_s < alone.clean_step_s
    assert abs(fed(8500.0, 1000.0, 5000.0, 300.0, 7000.0).clean_step_s / alone.clean_step_s - 1) < 0.01


def test_a_cost_of_a_few_hundredths_of_the_step_is_told_as_traced(tmp_path: Path) -> None:
    hardly = without_profiler(recorded(tmp_path, 0.0, operators=40, idle_us=20_000.0))
    clearly = without_profiler(recorded(tmp_path, 1.0, operators=40, idle_us=10_000.0))
    assert hardly is not None and clearly is not None
    assert hardly.clean_step_s == hardly.traced_step_s
    assert clearly.clean_step_s < 0.94 * clearly.traced_step_s


def test_launches_too_short_to_be_any_are_captured_and_nothing_is_taken_off(tmp_path: Path) -> None:
    assert without_profiler(recorded(tmp_path, 0.0, launch_us=0.6)) is None
