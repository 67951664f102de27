"""When windows open, on which thread, and for whom they make way. The device is a fake one: its calls are counted."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stallwise.recorder import jax_window, schema, step_boundaries, time_window
from stallwise.recorder.on_main_thread import OnMainThread
from stallwise.recorder.profile_window import ProfileWindow
from stallwise.recorder.recorder import Recorder
from stallwise.recorder.stages import Stages
from stallwise.recorder.thread_end import ThreadEnd
from stallwise.recorder.time_window import TimeWindow
from stallwise.recorder.writer import Writer


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
    asked = itertools.count()
    torch.cuda = types.SimpleNamespace(
        is_initialized=lambda: True, memory_stats=lambda: {"allocation.all.allocated": next(asked)}
    )
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


class Pumped:
    """What the main thread does between its lines, by hand: Pythons before 3.12 have no other way."""

    def __init__(self) -> None:
        self.then: Any = None

    def possible(self) -> bool:
        return True

    def call(self, then: Any, may: Any = None) -> bool:
        self.then = then
        return True

    def forget(self) -> None:
        self.then = None

    def between_two_lines(self) -> None:
        then, self.then = self.then, None
        if then is not None:
            then()


def started(recorder: Recorder, calls: list[str], until: str) -> Pumped:
    """A window that has waited for its time; the main thread works until the profiler did this, or a second."""
    window = TimeWindow(recorder, ProfileWindow(recorder))
    window._main = pumped = Pumped()  # type: ignore[assignment]
    window.start()
    end_s = time.monotonic() + (10 if until else 0.5)
    while not (until and any(until in call for call in calls)) and time.monotonic() < end_s:
        pumped.between_two_lines()
        time.sleep(0.005)
    return pumped


def test_a_program_without_steps_is_traced_by_time_on_its_main_thread(at_once: list[str], tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    started(recorder, at_once, until="stop")
    recorder.close()
    assert at_once == ["made", "start on MainThread", "stop on MainThread"]
    traced = next(line for line in lines_of(tmp_path) if line["k"] == "window")
    assert traced["window"] == "time" and traced["to"] - traced["from"] >= 0.1
    assert (tmp_path / "rank-00000" / "trace_time.json.gz").read_bytes() == b"trace"


def test_a_program_with_steps_on_its_main_thread_is_left_to_the_other_window(
    at_once: list[str], tmp_path: Path
) -> None:
    recorder = recorder_in(tmp_path)
    recorder.boundaries.kind = step_boundaries.OPTIMIZER
    started(recorder, at_once, until="")
    recorder.close()
    assert at_once == []


def test_a_program_that_only_waits_is_not_traced(at_once: list[str], tmp_path: Path) -> None:
    sys.modules["torch"].cuda.memory_stats = lambda: {"allocation.all.allocated": 7}
    recorder = recorder_in(tmp_path)
    started(recorder, at_once, until="")
    recorder.close()
    assert at_once == []


def test_steps_that_begin_while_it_waits_for_the_main_thread_win(at_once: list[str], tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    window = TimeWindow(recorder, ProfileWindow(recorder))
    window._main = pumped = Pumped()  # type: ignore[assignment]
    window.start()
    until_s = time.monotonic() + 10
    while pumped.then is None and time.monotonic() < until_s:
        time.sleep(0.005)
    recorder.boundaries.kind = step_boundaries.FORWARD
    pumped.between_two_lines()
    recorder.close()
    assert at_once == []


def test_it_is_closed_before_the_jobs_own_profiler_begins(
    at_once: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_window, "FOR_S", 30.0)
    recorder = recorder_in(tmp_path)
    started(recorder, at_once, until="start")
    sys.modules["torch"].autograd.profiler._prepare_profiler()
    recorder.close()
    assert at_once[-2:] == ["stop on MainThread", "theirs"]


def test_it_is_closed_before_a_graph_is_captured_and_never_opens_again(
    at_once: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_window, "FOR_S", 30.0)
    recorder = recorder_in(tmp_path)
    pumped = started(recorder, at_once, until="start")
    recorder.stages._capturing(lambda: at_once.append("captures"))()
    assert at_once[-2:] == ["stop on MainThread", "captures"]
    pumped.between_two_lines()
    recorder.close()
    assert at_once[-1] == "captures" and recorder.stages.capturing


def test_nothing_that_happens_while_a_graph_is_captured_is_a_step(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    stages = recorder.stages
    for _ in range(3):
        stages.boundary(step_boundaries.OPTIMIZER, recorder)
    stages._capturing(lambda: None)()
    stages.boundary(step_boundaries.OPTIMIZER, recorder)
    stages._captured(lambda: None)()
    assert recorder.number == 3
    stages.boundary(step_boundaries.OPTIMIZER, recorder)
    assert recorder.number == 4
    recorder.close()


@pytest.mark.skipif(not OnMainThread().possible(), reason="needs Python 3.12")
def test_the_main_thread_is_called_between_two_lines_of_a_loop() -> None:
    called: list[str] = []
    main, until_s = OnMainThread(), time.monotonic() + 10
    asked = threading.Thread(target=lambda: main.call(lambda: called.append(threading.current_thread().name)))
    asked.start()
    while not called and time.monotonic() < until_s:
        pass
    asked.join()
    assert called == ["MainThread"] and all(sys.monitoring.get_tool(i) != "stallwise" for i in (3, 4))


def test_a_thread_that_ends_is_told_on_itself_unless_it_has_forgotten() -> None:
    told: list[int] = []
    end = ThreadEnd(lambda: told.append(threading.get_ident()))

    def work(forget: bool) -> None:
        end.ask()
        if forget:
            end.forget()

    idents = []
    for forget in (False, True):
        thread = threading.Thread(target=work, args=(forget,))
        thread.start()
        idents.append(thread.ident)
        thread.join()
    assert told == idents[:1]


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs CPU PyTorch: pip install torch")
@pytest.mark.parametrize(("steps", "daemon"), [(10, False), (60, False), (60, True)])
def test_a_loop_in_a_thread_of_its_own_is_traced_there(steps: int, daemon: bool, tmp_path: Path) -> None:
    """Also where the thread ends inside the window; a daemon, which may be cut off there, is left alone."""
    import torch

    recorder = recorder_in(tmp_path)
    window = ProfileWindow(recorder, (1, 50))

    def work() -> None:
        for _ in range(steps + 1):
            torch.ones(2).add(1)
            recorder.step()

    thread = threading.Thread(target=work, daemon=daemon)
    thread.start()
    tid = thread.native_id
    thread.join()
    assert window._profiler is None
    recorder.close()
    traced = [line for line in lines_of(tmp_path) if line["k"] == "window"]
    if daemon:
        assert not traced and any("daemon" in line.get("note", "") for line in lines_of(tmp_path))
    else:
        assert [line["tid"] for line in traced] == [tid]
        assert (tmp_path / "rank-00000" / "trace_full.json.gz").stat().st_size > 100


class Graph:
    pass


def test_replays_take_over_when_the_captured_loop_has_fallen_silent() -> None:
    now, graph, optimizer = Clock(), Graph(), Graph()
    signs = step_boundaries.StepBoundaries(now)
    for _ in range(11):
        now.s += 0.01
        assert signs.sign(step_boundaries.OPTIMIZER, optimizer)
    found = []
    for _ in range(400):
        now.s += 0.01
        found.append(signs.sign(step_boundaries.REPLAY, graph))
    assert signs.kind == step_boundaries.REPLAY
    assert found.index(step_boundaries.BEGINS) * 0.01 == pytest.approx(step_boundaries.SILENT_FOR_S + 0.16, abs=0.05)
    assert all(found[found.index(step_boundaries.BEGINS) + 1 :])


def test_graphs_inside_a_training_step_end_none() -> None:
    now, graph, optimizer = Clock(), Graph(), Graph()
    signs = step_boundaries.StepBoundaries(now)
    assert signs.sign(step_boundaries.OPTIMIZER, optimizer)
    for _ in range(200):
        for _ in range(64):  # a model of many graphs
            now.s += 0.001
            assert not signs.sign(step_boundaries.REPLAY, graph)
        assert signs.sign(step_boundaries.OPTIMIZER, optimizer)
    assert signs.kind == step_boundaries.OPTIMIZER


def test_every_window_has_a_file_of_its_own() -> None:
    assert len(set(schema.TRACE_FILES.values())) == 3


def fake_jax(calls: list[str]) -> Any:
    def start_trace(folder: str) -> None:
        calls.append(f"start on {threading.current_thread().name}")
        (Path(folder) / "host.trace.json.gz").write_bytes(b"trace")

    def stop_trace() -> None:
        calls.append(f"stop on {threading.current_thread().name}")

    def broken() -> None:
        calls.append("at rest")
        raise RuntimeError("what the job asked for went wrong")

    return types.SimpleNamespace(
        profiler=types.SimpleNamespace(start_trace=start_trace, stop_trace=stop_trace),
        live_arrays=lambda: [types.SimpleNamespace(block_until_ready=broken)],
    )


@pytest.mark.parametrize("ends_inside", [False, True])
def test_jax_is_traced_by_the_main_thread_with_the_device_at_rest(
    ends_inside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopping its profiler beside running work has broken jobs; the job hears of its own errors, not we."""
    monkeypatch.setattr(jax_window, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(jax_window, "EARLIEST_S", 0.0)
    monkeypatch.setattr(jax_window, "QUIET_S", 0.02)
    monkeypatch.setattr(jax_window, "FOR_S", 30.0 if ends_inside else 0.05)
    calls: list[str] = []
    recorder = recorder_in(tmp_path)
    window = jax_window.JaxWindow(recorder, fake_jax(calls))
    window._main = pumped = Pumped()  # type: ignore[assignment]
    window.start()
    window._on_event("/jax/core/compile/backend_compile_duration", 1.0)
    last, until_s = "start" if ends_inside else "stop", time.monotonic() + 10
    while not any(last in call for call in calls) and time.monotonic() < until_s:
        pumped.between_two_lines()
        time.sleep(0.005)
    recorder.close()
    assert calls == ["at rest", "start on MainThread", "at rest", "stop on MainThread"]
    assert [line["window"] for line in lines_of(tmp_path) if line["k"] == "window"] == ["full"]
    assert (tmp_path / "rank-00000" / "trace_full.json.gz").read_bytes() == b"trace"


def test_a_line_inside_jax_is_no_place_for_its_profiler() -> None:
    names: dict[str, Any] = {"ask": jax_window.outside_of_jax}
    exec(compile("def inside(): return ask()", "/site-packages/jax/_src/pjit.py", "exec"), names)
    exec(compile("def beside(): return ask()", "/home/me/jax/train.py", "exec"), names)
    assert names["beside"]() and not names["inside"]()


def test_a_long_compilation_of_jax_is_seen_while_it_lasts() -> None:
    """JAX tells of a compilation when it is over; a window must not open inside one."""
    began, done = threading.Event(), threading.Event()
    names: dict[str, Any] = {}
    source = "def backend_compile(began, done):\n    began.set()\n    done.wait(10)\n"
    exec(compile(source, "/site-packages/jax/_src/compiler.py", "exec"), names)
    thread = threading.Thread(target=names["backend_compile"], args=(began, done))
    assert not jax_window.compiles_now()
    thread.start()
    began.wait(10)
    assert jax_window.compiles_now()
    done.set()
    thread.join()
    assert not jax_window.compiles_now()
