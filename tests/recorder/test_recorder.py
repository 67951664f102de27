"""The recorder with fake clocks: what is written, what a late device clock shows, and what happens when things break."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

import stallwise
from stallwise.readers.records.rank_record import parse
from stallwise.recorder.device_clock import KEEP_STEPS, DeviceClock
from stallwise.recorder.recorder import Recorder
from stallwise.recorder.sampler import EVERY_S, HAND_OVER_S, MOST_SHARE, Sampler
from stallwise.recorder.watchdog import Watchdog
from stallwise.recorder.writer import Writer


class FakeClock:
    """Time that moves only when told."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def pass_(self, seconds: float) -> None:
        self.now_s += seconds


class FakeDevice:
    """A stream that runs behind the host: work is queued at once and done later."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.done_s = 0.0

    def queue(self, seconds: float) -> None:
        self.done_s = max(self.done_s, self.clock.now_s) + seconds

    def event(self) -> FakeEvent:
        return FakeEvent(self)


class FakeEvent:
    def __init__(self, device: FakeDevice) -> None:
        self.device = device
        self.at_s = float("nan")

    def record(self) -> None:
        self.at_s = max(self.device.done_s, self.device.clock.now_s)

    def query(self) -> bool:
        return self.device.clock.now_s >= self.at_s

    def elapsed_time(self, other: FakeEvent) -> float:
        return (other.at_s - self.at_s) * 1e3


def recorder_at(path: Path, clock: FakeClock, device: FakeDevice | None = None) -> Recorder:
    writer = Writer(str(path), flush_every_s=3600)
    find = (lambda: DeviceClock(device.event, now=clock)) if device else (lambda: None)
    return Recorder(writer, now=clock, wall=clock, find_device=find)


def test_one_line_a_step_with_the_seconds_of_each_span(tmp_path: Path) -> None:
    clock = FakeClock()
    recorder = recorder_at(tmp_path / "rank-00000.jsonl", clock)
    for _ in range(3):
        with recorder.span("forward"):
            clock.pass_(0.25)
        clock.pass_(0.5)
        recorder.gauge("scale", 2.0)
        recorder.step()
    recorder.close()
    record = parse((tmp_path / "rank-00000.jsonl").read_text().splitlines())
    assert record.step == [0, 1, 2]
    assert record.duration_s == pytest.approx([0.75] * 3)
    assert record.stage("forward") == pytest.approx([0.25] * 3)
    assert record.side() == pytest.approx([0.5] * 3)
    assert record.gauges[0] == {"scale": 2.0} and record.ended == "exit"


def test_device_events_see_what_a_host_timer_cannot(tmp_path: Path) -> None:
    """Forward is launched in 1 ms and runs 8 ms on the device: the host's figure is eight times too small."""
    clock = FakeClock()
    device = FakeDevice(clock)
    recorder = recorder_at(tmp_path / "r.jsonl", clock, device)
    recorder.step()  # the first step ends before CUDA is looked for
    for _ in range(40):
        with recorder.span("forward"):
            device.queue(0.008)
            clock.pass_(0.001)
        clock.pass_(0.0085)
        recorder.step()
    clock.pass_(1.0)
    recorder.close()
    record = parse((tmp_path / "r.jsonl").read_text().splitlines())
    host = [spans["forward"] for spans in record.host_s if spans]
    assert max(host) < 0.002
    steady = record.stage("forward")[5:]
    assert record.on_device and steady == pytest.approx(0.008, rel=0.03)


def test_a_stamp_that_waits_for_room_in_the_launch_queue_is_no_cost_of_stamping(tmp_path: Path) -> None:
    """A host that runs ahead of its device is held up at any launch: every step is stamped all the same."""
    clock = FakeClock()
    device = FakeDevice(clock)
    stamped = []

    class HeldUpEvent(FakeEvent):
        def record(self) -> None:
            super().record()
            clock.pass_(5e-6 if len(stamped) % 2 == 0 else 20e-3)
            stamped.append(clock.now_s)

    writer = Writer(str(tmp_path / "r.jsonl"), flush_every_s=3600)
    recorder = Recorder(
        writer, now=clock, wall=clock, find_device=lambda: DeviceClock(lambda: HeldUpEvent(device), now=clock)
    )
    recorder.step()
    for _ in range(40):
        with recorder.span("forward"):
            clock.pass_(60e-3)
        recorder.step()
    assert len(stamped) >= 40 * 2


def test_a_host_that_runs_ahead_at_first_is_stamped_all_the_same(tmp_path: Path) -> None:
    """Until the launch queue is full a step takes the host next to nothing: that is not how long steps are."""
    clock = FakeClock()
    device = FakeDevice(clock)

    class SlowEvent(FakeEvent):
        def record(self) -> None:
            super().record()
            clock.pass_(22e-6)

    writer = Writer(str(tmp_path / "r.jsonl"), flush_every_s=3600)
    recorder = Recorder(
        writer, now=clock, wall=clock, find_device=lambda: DeviceClock(lambda: SlowEvent(device), now=clock)
    )
    recorder.step()
    for number in range(40):
        with recorder.span("forward"):
            device.queue(0.2)
            clock.pass_(0.0005 if number < 4 else 0.2)
        recorder.step()
    clock.pass_(2.0)
    recorder.close()
    record = parse((tmp_path / "r.jsonl").read_text().splitlines())
    assert len(record.device_s) >= 30 and record.on_device


def test_stamps_keep_to_their_share_of_short_steps(tmp_path: Path) -> None:
    """Stamping that takes a tenth of a step is done for few steps, and each stands for those between."""
    clock = FakeClock()
    device = FakeDevice(clock)
    stamped = []

    class SlowEvent(FakeEvent):
        def record(self) -> None:
            super().record()
            clock.pass_(50e-6)
            stamped.append(clock.now_s)

    writer = Writer(str(tmp_path / "r.jsonl"), flush_every_s=3600)
    recorder = Recorder(
        writer, now=clock, wall=clock, find_device=lambda: DeviceClock(lambda: SlowEvent(device), now=clock)
    )
    recorder.step()
    for _ in range(1200):
        with recorder.span("forward"):
            device.queue(0.0008)
            clock.pass_(0.0005)
        clock.pass_(0.0005)
        recorder.step()
    clock.pass_(1.0)
    recorder.close()
    record = parse((tmp_path / "r.jsonl").read_text().splitlines())
    settled = [
        at_s for at_s in stamped if at_s > stamped[0] + 0.2
    ]  # the first steps are stamped to learn how long steps are
    assert len(settled) * 50e-6 < 1.2 * 0.002 * sum(record.duration_s)
    assert len(stamped) - len(settled) < 40
    assert len(record.device_s) >= 10 and record.on_device
    assert record.stage("forward")[100:] == pytest.approx(0.0008, rel=0.1)


def test_waiting_for_the_device_is_never_done(tmp_path: Path) -> None:
    """A device that never finishes costs memory for a bounded number of steps and no time."""
    clock = FakeClock()
    device = FakeDevice(clock)
    recorder = recorder_at(tmp_path / "r.jsonl", clock, device)
    recorder.step()
    device.queue(1e9)
    for _ in range(3 * KEEP_STEPS):
        with recorder.span("forward"):
            pass
        recorder.step()
    assert recorder.device is not None
    assert len(recorder.device._waiting) == KEEP_STEPS


def test_looks_at_a_thread_that_computes_are_further_apart(tmp_path: Path) -> None:
    sampler = Sampler(recorder_at(tmp_path / "r.jsonl", FakeClock()))
    main = threading.main_thread().ident
    sampler._measure_thread(main)
    sampler._measured_s -= 1.0  # a second ago, with nothing of a core since
    sampler._measure_thread(main)
    assert sampler._pause_s() == EVERY_S  # it waited: a look costs it nothing
    sampler._measured_s -= 1.0
    sampler._used_s -= 0.9
    sampler._measure_thread(main)
    assert sampler._pause_s() == pytest.approx(HAND_OVER_S / MOST_SHARE) and HAND_OVER_S / MOST_SHARE > EVERY_S
    ended = threading.Thread(target=int)
    ended.start()
    ident = ended.ident
    ended.join()
    sampler._measure_thread(ident)  # one that has ended is none to ask, and no reason to crash
    assert sampler._computes


def test_a_stack_is_written_once_and_its_lines_once(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path / "r.jsonl", FakeClock())
    sampler = Sampler(recorder)

    def deep(count: int) -> None:
        if count:
            deep(count - 1)
        else:
            sampler._look(threading.get_ident())

    for _ in range(3):
        deep(5)
    sampler._hand_over()
    recorder.step()
    recorder.close()
    text = (tmp_path / "r.jsonl").read_text()
    record = parse(text.splitlines())
    assert text.count('"k":"frames"') == 1 and len(record.samples) == 3 and not record.lost_lines
    (stack,) = record.frames.values()
    functions = [line.rpartition(" ")[2].rpartition(".")[2] for line in stack]
    assert functions.count("deep") == 6 and functions.index("deep") == functions.index("_look") + 1


def test_a_full_disk_ends_the_recording_not_the_job(capfd: pytest.CaptureFixture[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    clock = FakeClock()
    recorder = recorder_at(Path("/dev/full"), clock)
    recorder.step()
    recorder.writer.flush()
    recorder.step()
    recorder.close()
    assert recorder.writer.broken
    assert capfd.readouterr().err.count("the job goes on") == 1


def test_an_unwritable_folder_ends_the_recording_not_the_job(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    recorder = recorder_at(blocker / "below" / "r.jsonl", FakeClock())
    recorder.step()
    recorder.close()
    assert recorder.writer.broken


def test_a_process_that_never_trains_leaves_no_file(tmp_path: Path) -> None:
    recorder_at(tmp_path / "r.jsonl", FakeClock()).close()
    assert not (tmp_path / "r.jsonl").exists()


def test_the_file_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    writer = Writer(str(path), limit_bytes=10_000, flush_every_s=3600)
    writer.begin()
    for n in range(500):
        writer.put({"k": "mark", "n": n, "name": "x" * 50})
        writer.flush()
    writer.close()
    assert path.stat().st_size + path.with_suffix(".jsonl.old").stat().st_size <= 20_000
    assert json.loads(path.read_text().splitlines()[-1])["n"] == 499


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path / "r.jsonl", FakeClock())
    recorder.step()
    recorder.writer.flush()
    before = (tmp_path / "r.jsonl").read_bytes()
    child = os.fork()
    if child == 0:
        recorder.step()
        recorder.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert (tmp_path / "r.jsonl").read_bytes() == before
    recorder.close()


def test_a_torn_last_line_is_left_out() -> None:
    good = '{"k":"step","n":0,"t":1,"d":0.5,"s":{}}'
    record = parse([good, good[:20]])
    assert record.step == [0] and record.lost_lines == 1


def test_off_is_a_no_op() -> None:
    assert stallwise.recording() is None
    assert stallwise.span("a") is stallwise.span("b")
    with stallwise.span("a"):
        stallwise.step()
        stallwise.mark("x")
        stallwise.gauge("y", 1.0)
    assert list(stallwise.steps([1, 2])) == [1, 2]


def test_the_watchdog_writes_stacks_once_per_silence(tmp_path: Path) -> None:
    clock = FakeClock()
    recorder = recorder_at(tmp_path / "r.jsonl", clock)
    watchdog = Watchdog(recorder, at_least_s=60, look_every_s=3600)
    watchdog.start()
    for _ in range(5):
        clock.pass_(1.0)
        recorder.step()
    clock.pass_(30)
    assert not watchdog.look()
    clock.pass_(40)
    assert watchdog.look() and not watchdog.look()
    recorder.close()
    record = parse((tmp_path / "r.jsonl").read_text().splitlines())
    assert len(record.stacks) == 1
    assert "test_the_watchdog_writes_stacks_once" in record.stacks[0][3]
