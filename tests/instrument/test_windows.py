"""When windows open, on which thread, and for whom they make way. The device is a fake one: its calls are counted."""

from __future__ import annotations

import json
import sys
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stallwise.instrument import borders, schema, time_window
from stallwise.instrument.profile_window import ProfileWindow
from stallwise.instrument.recorder import Recorder
from stallwise.instrument.stages import Stages
from stallwise.instrument.time_window import TimeWindow
from stallwise.instrument.writer import Writer


class Clock:
    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def fake_torch(calls: list[str]) -> Any:
    class Profile:
        def __init__(self, activities: Any) -> None:
            calls.append("made")

        def start(self) -> None:
            calls.append(f"start on {threading.current_thread().name}")

        def stop(self) -> None:
            calls.append(f"stop on {threading.current_thread().name}")

        def export_chrome_trace(self, path: str) -> None:
            Path(path).write_bytes(b"trace")

    torch: Any = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(is_initialized=lambda: True)
    torch.version = types.SimpleNamespace(cuda=None)
    torch.profiler = types.SimpleNamespace(profile=Profile, ProfilerActivity=types.SimpleNamespace(CUDA="cuda"))
    own = types.SimpleNamespace(
        _is_profiler_enabled=False, _prepare_profiler=lambda: calls.append("theirs"), _enable_profiler=lambda: None
    )
    torch.autograd = types.SimpleNamespace(profiler=own)
    torch._C = types.SimpleNamespace(_autograd=types.SimpleNamespace(_profiler_enabled=lambda: False))
    return torch


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A live device, and a window that opens as soon as it looks."""
    calls: list[str] = []
    monkeypatch.setitem(sys.modules, "torch", fake_torch(calls))
    monkeypatch.setattr(time_window, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(time_window, "AFTER_S", 0.05)
    monkeypatch.setattr(time_window, "FOR_S", 0.1)
    yield calls


def recorder_in(folder: Path) -> Recorder:
    recorder = Recorder(Writer(str(folder / "rank-00000.jsonl"), flush_every_s=0.02))
    recorder.stages = Stages(recorder)
    return recorder


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rank-00000.jsonl").read_text().splitlines()]


def wait_for(calls: list[str], word: str) -> None:
    until = time.monotonic() + 10
    while not any(word in call for call in calls) and time.monotonic() < until:
        time.sleep(0.005)


def test_a_program_without_steps_is_traced_by_time_on_a_thread_of_ours(at_once: list[str], tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    window = TimeWindow(recorder, ProfileWindow(recorder))
    window.start()
    wait_for(at_once, "stop")
    recorder.close()
    assert at_once == ["made", "start on stallwise-window", "stop on stallwise-window"]
    traced = next(line for line in lines_of(tmp_path) if line["k"] == "window")
    assert traced["window"] == "time" and traced["to"] - traced["from"] >= 0.1
    assert (tmp_path / "rank-00000" / "trace_time.json.gz").read_bytes() == b"trace"


def test_a_program_with_steps_on_its_main_thread_is_left_to_the_other_window(
    at_once: list[str], tmp_path: Path
) -> None:
    recorder = recorder_in(tmp_path)
    recorder.borders.kind = borders.OPTIMIZER
    window = TimeWindow(recorder, ProfileWindow(recorder))
    window.start()
    time.sleep(0.3)
    recorder.close()
    assert at_once == []


def test_steps_in_another_thread_are_traced_by_time(at_once: list[str], tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    recorder.borders.kind = borders.OPTIMIZER
    by_steps = ProfileWindow(recorder)
    by_steps.in_threads = True
    TimeWindow(recorder, by_steps).start()
    wait_for(at_once, "stop")
    recorder.close()
    assert "stop on stallwise-window" in at_once


def test_it_is_closed_before_the_jobs_own_profiler_begins(
    at_once: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_window, "FOR_S", 30.0)
    recorder = recorder_in(tmp_path)
    TimeWindow(recorder, ProfileWindow(recorder)).start()
    wait_for(at_once, "start")
    sys.modules["torch"].autograd.profiler._prepare_profiler()
    recorder.close()
    assert at_once[-2:] == ["stop on stallwise-window", "theirs"]


def test_it_is_closed_before_a_graph_is_captured_and_never_opens_again(
    at_once: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_window, "FOR_S", 30.0)
    recorder = recorder_in(tmp_path)
    TimeWindow(recorder, ProfileWindow(recorder)).start()
    wait_for(at_once, "start")
    recorder.stages._capturing(lambda: at_once.append("captures"))()
    assert at_once[-2:] == ["stop on stallwise-window", "captures"]
    time.sleep(0.2)
    recorder.close()
    assert at_once[-1] == "captures" and recorder.stages.capturing


def test_nothing_that_happens_while_a_graph_is_captured_is_a_step(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    stages = recorder.stages
    for _ in range(3):
        stages.border(borders.OPTIMIZER, recorder)
    stages._capturing(lambda: None)()
    stages.border(borders.OPTIMIZER, recorder)
    stages._captured(lambda: None)()
    assert recorder.number == 3
    stages.border(borders.OPTIMIZER, recorder)
    assert recorder.number == 4
    recorder.close()


class Graph:
    pass


def test_replays_take_over_when_the_captured_loop_has_fallen_silent() -> None:
    now, graph, optimizer = Clock(), Graph(), Graph()
    signs = borders.Borders(now)
    for _ in range(11):
        now.s += 0.01
        assert signs.ends(borders.OPTIMIZER, optimizer)
    found = []
    for _ in range(400):
        now.s += 0.01
        found.append(signs.ends(borders.REPLAY, graph))
    assert signs.kind == borders.REPLAY
    assert found.index(None) * 0.01 == pytest.approx(borders.SILENT_FOR_S + 0.16, abs=0.05)
    assert all(found[found.index(None) + 1 :])


def test_graphs_inside_a_training_step_end_none() -> None:
    now, graph, optimizer = Clock(), Graph(), Graph()
    signs = borders.Borders(now)
    assert signs.ends(borders.OPTIMIZER, optimizer)
    for _ in range(200):
        for _ in range(64):  # a model of many graphs
            now.s += 0.001
            assert not signs.ends(borders.REPLAY, graph)
        assert signs.ends(borders.OPTIMIZER, optimizer)
    assert signs.kind == borders.OPTIMIZER


def test_every_window_has_a_file_of_its_own() -> None:
    assert len(set(schema.TRACE_FILES.values())) == 3
