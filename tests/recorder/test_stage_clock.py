"""Whose time it is, with fake clocks: spans over hooks, spans in spans, threads, generators, rounds, and the device's own sums."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.recorder.test_recorder import FakeClock, FakeDevice, FakeEvent, recorder_at

from stallwise.readers.records.rank_record import RankRecord, parse
from stallwise.recorder import schema, step_boundaries
from stallwise.recorder.recorder import Recorder
from stallwise.recorder.stage_names import NAMES, STAGE_OF, stage_of
from stallwise.recorder.stages import Stages


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def recorder(tmp_path: Path, clock: FakeClock) -> Recorder:
    recorder = recorder_at(tmp_path / "rank-00000.jsonl", clock)
    recorder.stages = Stages(recorder)
    return recorder


def read(recorder: Recorder) -> RankRecord:
    recorder.close()
    return parse(Path(recorder.writer.path).read_text().splitlines())


@contextmanager
def hooked(recorder: Recorder, stage: str) -> Iterator[None]:
    """A call of the framework that the recorder has hooked."""
    entered = recorder.stages.enter(stage)
    try:
        yield
    finally:
        if entered:
            recorder.stages.leave()


def test_a_span_around_a_hooked_call_is_counted_once(recorder: Recorder, clock: FakeClock) -> None:
    for _ in range(3):
        with recorder.span("forward"):
            clock.pass_(0.1)
            with hooked(recorder, "forward"), hooked(recorder, "evaluation"):
                clock.pass_(0.5)
            clock.pass_(0.2)
        with hooked(recorder, "backward"):
            clock.pass_(1.0)
        clock.pass_(0.25)
        recorder.step()
    record = read(recorder)
    assert record.host_s == [pytest.approx({"forward": 0.8, "backward": 1.0})] * 3
    assert record.side() == pytest.approx([0.25] * 3) and record.span_s == [{}] * 3


def test_a_span_inside_a_hooked_call_is_taken_out_of_it(recorder: Recorder, clock: FakeClock) -> None:
    with hooked(recorder, "backward"):
        clock.pass_(1.0)
        with recorder.span("all_reduce"):
            clock.pass_(0.5)
        clock.pass_(1.0)
    recorder.step()
    record = read(recorder)
    assert record.host_s == [pytest.approx({"backward": 2.0, "gradient_sync": 0.5})]
    assert record.span_s == [pytest.approx({"all_reduce": 0.5})]


def test_nested_spans_are_exclusive_in_sums_and_whole_in_their_rows(recorder: Recorder, clock: FakeClock) -> None:
    with recorder.span("train_step"):
        with recorder.span("backward"):
            clock.pass_(1.0)
            with recorder.span("grad_sync"):
                clock.pass_(0.5)
                with recorder.span("bucket 0"):
                    clock.pass_(0.25)
        clock.pass_(2.0)
        with recorder.span("log"), recorder.span("log"), recorder.span("log"):
            clock.pass_(0.125)
    recorder.step()
    record = read(recorder)
    assert record.host_s == [pytest.approx({"backward": 1.0, "gradient_sync": 0.75})]
    rows = {"train_step": 3.875, "backward": 1.75, "grad_sync": 0.75, "bucket 0": 0.25, "log": 0.125}
    assert record.span_s == [pytest.approx(rows)]
    assert record.side() == pytest.approx([2.125]) and record.duration_s == pytest.approx([3.875])


def test_a_step_that_ends_inside_spans_gets_its_part_of_them(recorder: Recorder, clock: FakeClock) -> None:
    with recorder.span("epoch"), recorder.span("forward"):
        for _ in range(3):
            clock.pass_(1.0)
            recorder.step()
        clock.pass_(0.5)
    recorder.step()
    record = read(recorder)
    assert [s["forward"] for s in record.host_s] == pytest.approx([1.0, 1.0, 1.0, 0.5])
    assert record.span("epoch") == pytest.approx([1.0, 1.0, 1.0, 0.5])


def test_the_optimizers_span_ends_the_step_that_its_optimizer_ends(recorder: Recorder, clock: FakeClock) -> None:
    class One:
        pass

    optimizer = One()
    for _ in range(3):
        clock.pass_(1.0)
        with recorder.span("optimizer"):
            clock.pass_(0.5)
            recorder.stages.boundary(step_boundaries.OPTIMIZER, optimizer)
            clock.pass_(0.25)  # zero_grad
    record = read(recorder)
    assert record.duration_s == pytest.approx([1.75] * 3)
    assert record.host_s == [pytest.approx({"optimizer": 0.75})] * 3


def test_time_of_the_recorder_itself_is_nobodys(recorder: Recorder, clock: FakeClock) -> None:
    with recorder.span("epoch"):
        clock.pass_(1.0)
        recorder.step()
        clock.pass_(7.0)  # a profiler starts
        recorder.not_the_jobs(7.0)
        clock.pass_(1.0)
    recorder.step()
    record = read(recorder)
    assert record.duration_s == pytest.approx([1.0, 1.0]) and record.span("epoch") == pytest.approx([1.0, 1.0])


def test_spans_of_other_threads_are_no_part_of_the_step(recorder: Recorder, clock: FakeClock) -> None:
    opened, go_on = threading.Event(), threading.Event()

    def decode() -> None:
        with recorder.span("forward"), recorder.span("decode"):
            opened.set()
            go_on.wait(10)

    thread = threading.Thread(target=decode)
    thread.start()
    opened.wait(10)
    for _ in range(2):
        with recorder.span("backward"):
            clock.pass_(1.0)
        recorder.step()
    go_on.set()
    thread.join()
    record = read(recorder)
    assert record.host_s == [pytest.approx({"backward": 1.0})] * 2
    assert record.elsewhere_s == [pytest.approx({"forward": 1.0, "decode": 1.0})] * 2
    assert record.spans_of_the_user() == [] and record.spans_elsewhere() == ["decode", "forward"]


def test_threads_that_have_ended_are_forgotten(recorder: Recorder) -> None:
    for _ in range(200):
        thread = threading.Thread(target=lambda: recorder.span("decode").__enter__())
        thread.start()
        thread.join()
        recorder.step()
    assert len(recorder.clocks) < 100


def test_an_exception_closes_what_it_leaves(recorder: Recorder, clock: FakeClock) -> None:
    with pytest.raises(ValueError, match="bad batch"), recorder.span("forward"), recorder.span("attention"):
        clock.pass_(1.0)
        raise ValueError("bad batch")
    clock.pass_(1.0)
    recorder.step()
    record = read(recorder)
    assert record.host_s == [pytest.approx({"forward": 1.0})] and record.side() == pytest.approx([1.0])


def test_spans_closed_out_of_order_lose_nothing(recorder: Recorder, clock: FakeClock) -> None:
    forward, sync = recorder.span("forward"), recorder.span("grad_sync")
    forward.__enter__()
    clock.pass_(1.0)
    sync.__enter__()
    clock.pass_(2.0)
    forward.__exit__(None, None, None)
    clock.pass_(4.0)
    sync.__exit__(None, None, None)
    recorder.step()
    record = read(recorder)
    assert record.host_s == [pytest.approx({"forward": 1.0, "gradient_sync": 6.0})]
    assert record.span_s == [pytest.approx({"forward": 3.0, "grad_sync": 6.0})]


def test_a_span_pauses_while_its_generator_is_suspended(recorder: Recorder, clock: FakeClock) -> None:
    def batches() -> Iterator[int]:
        for n in range(3):
            with recorder.span("forward"):
                clock.pass_(1.0)
                yield n
                clock.pass_(0.5)
            recorder.step()

    for _ in batches():
        with recorder.span("backward"):
            clock.pass_(4.0)
    record = read(recorder)
    assert record.host_s == [pytest.approx({"forward": 1.5, "backward": 4.0})] * 3


def test_a_generator_that_is_dropped_inside_a_span_ends_it(recorder: Recorder, clock: FakeClock) -> None:
    def batches() -> Iterator[int]:
        while True:
            with recorder.span("forward"):
                clock.pass_(1.0)
                yield 0

    for _ in batches():
        clock.pass_(4.0)
        break
    clock.pass_(1.0)
    recorder.step()
    record = read(recorder)
    assert record.host_s == [pytest.approx({"forward": 1.0})] and record.side() == pytest.approx([5.0])


def test_a_context_manager_made_of_a_generator_times_its_block(recorder: Recorder, clock: FakeClock) -> None:
    @contextmanager
    def timer(name: str) -> Iterator[None]:
        with recorder.span(name):
            yield

    def inside_a_generator() -> Iterator[int]:
        with timer("backward"):
            clock.pass_(1.0)
            yield 0

    with timer("forward"):
        clock.pass_(2.0)
    for _ in inside_a_generator():
        clock.pass_(8.0)
    recorder.step()
    record = read(recorder)
    assert record.host_s == [pytest.approx({"forward": 2.0, "backward": 1.0})]


@pytest.mark.parametrize("stage", NAMES)
def test_every_stage_has_its_own_name_and_no_other_stages(stage: str) -> None:
    names = NAMES[stage].split()
    assert stage_of(stage) == stage and len(names) == len(set(names))
    assert [name for name in names if STAGE_OF[name] != stage] == []


def test_names_are_compared_without_case_and_dashes(recorder: Recorder) -> None:
    assert {stage_of(n) for n in ("Grad-Sync", "allreduce", "all_reduce", "sync", "gradient sync")} == {"gradient_sync"}
    assert stage_of("my all_reduce of metrics") is None and stage_of("") is None
    assert len({stage_of(f"step {n}") for n in range(5000)}) == 1


class Optimizer:
    """Only its identity matters."""


def round_of(recorder: Recorder, clock: FakeClock, optimizer: Optimizer, seconds: float) -> None:
    with hooked(recorder, "optimizer"):
        clock.pass_(seconds)
    recorder.stages.boundary(step_boundaries.OPTIMIZER, optimizer)


@pytest.mark.parametrize("critics", [1, 5, 10, 100])
def test_critics_and_their_generator_are_one_round(recorder: Recorder, clock: FakeClock, critics: int) -> None:
    generator, critic = Optimizer(), Optimizer()
    for _ in range(6):
        round_of(recorder, clock, generator, 0.5)
        for _ in range(critics):
            round_of(recorder, clock, critic, 0.125)
    record = read(recorder)
    assert len(record.step) == 6
    assert record.duration_s[1:] == pytest.approx([0.5 + critics * 0.125] * 5)


def test_steps_of_an_optimizer_that_took_over_are_steps(recorder: Recorder, clock: FakeClock) -> None:
    """The first one is kept alive and never used again: nothing of what the second did melts into one step."""
    first, second = Optimizer(), Optimizer()
    for _ in range(4):
        round_of(recorder, clock, first, 0.5)
    for _ in range(300):
        with recorder.span("log"):
            clock.pass_(0.25)
        round_of(recorder, clock, second, 0.125)
    record = read(recorder)
    assert record.step == list(range(304))
    assert record.duration_s == pytest.approx([0.5] * 4 + [0.375] * 300)
    assert record.host_s[4:] == [pytest.approx({"optimizer": 0.125})] * 300
    assert record.span("log")[4:] == pytest.approx([0.25] * 300)


def test_slow_steps_of_an_optimizer_that_took_over_show_within_minutes(recorder: Recorder, clock: FakeClock) -> None:
    first, second = Optimizer(), Optimizer()
    round_of(recorder, clock, first, 10.0)
    for _ in range(9):
        round_of(recorder, clock, second, 10.0)
    assert recorder.number == 10
    round_of(recorder, clock, first, 10.0)  # it had not gone
    for _ in range(20):
        round_of(recorder, clock, second, 10.0)
    assert recorder.number == 11


def device_recorder(tmp_path: Path, clock: FakeClock, device: FakeDevice) -> Recorder:
    recorder = recorder_at(tmp_path / "rank-00000.jsonl", clock, device)
    recorder.stages = Stages(recorder)
    recorder.step()  # CUDA is looked for at the end of a step
    return recorder


def test_on_the_device_too_a_stage_is_counted_once_and_sums_hold(tmp_path: Path, clock: FakeClock) -> None:
    device = FakeDevice(clock)
    recorder = device_recorder(tmp_path, clock, device)

    def launch(seconds: float) -> None:
        device.queue(seconds)
        clock.pass_(0.001)

    for _ in range(20):
        with recorder.span("forward"), hooked(recorder, "forward"):
            launch(0.010)
        with recorder.span("backward"):
            launch(0.020)
            with recorder.span("grad_sync"):
                launch(0.005)
        launch(0.004)  # between stages
        with recorder.span("my own"), hooked(recorder, "optimizer"):
            launch(0.003)
        clock.pass_(0.042 - 0.005)
        recorder.step()
    clock.pass_(1.0)
    record = read(recorder)
    assert record.on_device and len(record.device_s) >= 15
    for number in list(record.device_s)[2:-1]:
        expected = {"forward": 0.010, "backward": 0.020, "gradient_sync": 0.005, "optimizer": 0.003}
        assert record.device_s[number] == pytest.approx(expected)
        assert record.device_span_s[number] == pytest.approx({"backward": 0.025, "grad_sync": 0.005, "my own": 0.003})
        assert record.device_duration_s[number] == pytest.approx(0.042)
    assert record.side()[5:] == pytest.approx(0.004)
    assert (sum(record.stage(s) for s in schema.STAGES if s != schema.SIDE) + record.side()) == pytest.approx(
        record.whole()
    )


def test_spans_across_steps_are_cut_on_the_device_too(tmp_path: Path, clock: FakeClock) -> None:
    device = FakeDevice(clock)
    recorder = device_recorder(tmp_path, clock, device)
    with recorder.span("epoch"), recorder.span("forward"):
        for _ in range(12):
            device.queue(0.5)
            clock.pass_(0.5)
            recorder.step()
    clock.pass_(1.0)
    record = read(recorder)
    assert len(record.device_s) > 8
    assert [s["forward"] for s in record.device_s.values()][1:] == pytest.approx([0.5] * (len(record.device_s) - 1))


def test_a_span_on_a_stream_that_lags_costs_its_step_and_no_more(tmp_path: Path, clock: FakeClock) -> None:
    """PyTorch raises where an event has not passed: the job must not hear of it."""
    device = FakeDevice(clock)
    recorder = device_recorder(tmp_path, clock, device)
    assert recorder.device is not None
    for number in range(12):
        with recorder.span("forward"):
            device.queue(0.5)
            clock.pass_(0.5)
        if number == 5:
            pair = recorder.device._stages[-1]
            pair[1] = Lagging(device)
        recorder.step()
    clock.pass_(1.0)
    record = read(recorder)
    assert len(record.device_s) == 11 and 6 not in record.device_s and record.on_device_steps == 12


class Lagging(FakeEvent):
    def elapsed_time(self, other: FakeEvent) -> float:
        raise RuntimeError("Both events must be completed before calculating elapsed time.")


def test_a_record_of_the_second_version_is_read_as_it_was_written() -> None:
    line = '{"k":"step","n":0,"t":1,"d":0.5,"s":{"forward":0.2,"mine":0.1,"gc":0.01},"b":"user"}'
    record = parse([line])
    assert record.host_s == [{"forward": 0.2}] and record.span_s == [{"mine": 0.1, "gc": 0.01}]
    assert record.spans_of_the_user() == ["mine"] and record.collections() == pytest.approx([0.01])
