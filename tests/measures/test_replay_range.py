"""The ends of a replayed gain, and who waits in a run whose host is far ahead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallwise.doctor.measures._dependencies import blocked_calls, graph_of_view
from stallwise.doctor.measures._replay_range import HOST_STAYS, won_range_s
from stallwise.doctor.measures._trace_view import TraceView
from stallwise.doctor.whatif import _timeline


@pytest.mark.parametrize("share", [0.5, 0.7, 0.86, 0.97])
def test_a_large_gain_of_narrower_types_keeps_what_the_work_still_takes(share: float) -> None:
    low, high = won_range_s(share, ("dtype",), 1.0, 1.0)
    assert 0 < low <= share <= high < 1
    faster_low, faster_high = 1 / (1 - low), 1 / (1 - high)
    assert faster_high <= 2.0 * faster_low and faster_low <= 1 / (1 - share) <= faster_high


@pytest.mark.parametrize("change", ["dtype", "fuse", "no-input-wait", "graphs", "copies-ahead"])
def test_a_small_gain_is_judged_by_what_goes(change: str) -> None:
    low, high = won_range_s(0.05, (change,), 1.0, 0.3)
    assert high <= 2.0 * low and low < 0.06 and high < 0.11


def test_whatever_the_host_is_spared_the_devices_work_and_some_of_its_own_stay() -> None:
    assert won_range_s(0.9, ("no-input-wait",), 1.0, 0.0)[1] == pytest.approx(1 - HOST_STAYS * 0.1)
    assert won_range_s(0.5, ("no-input-wait",), 1.0, 0.45)[1] == pytest.approx(0.55)


@pytest.mark.parametrize("call", ["cudaMemsetAsync", "cudaLaunchKernel", "cudaEventRecord"])
def test_any_call_stands_before_a_full_queue_and_what_it_waits_is_not_the_hosts(call: str, tmp_path: Path) -> None:
    events, kernel_us = [], 100.0
    for n in range(200):
        about = {"cat": "kernel", "name": "gemm", "ts": 1000 + n * kernel_us, "dur": kernel_us, "pid": 0, "tid": 7}
        launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 10.0 + 5 * n, "dur": 4.0, "pid": 1, "tid": 1}
        events += [{"ph": "X", "args": {"correlation": n + 1, "stream": 7, "device": 0}, **e} for e in (about, launch)]
    # From 1.1 ms, when next to nothing is done, until the 60th product is.
    waits = {
        "cat": "cuda_runtime",
        "name": call,
        "ts": 1100.0,
        "dur": 1000 + 60 * kernel_us + 20 - 1100,
        "pid": 1,
        "tid": 1,
    }
    events.append({"ph": "X", "args": {"correlation": 900}, **waits})
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    view = TraceView(_timeline(str(file))[0])
    assert [view.timeline.names[view.timeline.name[row]] for row in blocked_calls(view)] == [call]
    graph, _ = graph_of_view(view)
    assert graph.waited_s == pytest.approx([(1000 + 60 * kernel_us - 1100) * 1e-6], rel=1e-3)
