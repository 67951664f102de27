"""Collects spans, marks and gauges of the current step and hands one line a step to the writer."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from stallwise.instrument import borders, schema
from stallwise.instrument.device_clock import DeviceClock, find_device_clock
from stallwise.instrument.writer import Writer

LOOK_FOR_DEVICE_STEPS = 20  # CUDA starts with the first kernel, so look again for a while, then stop asking


class Span:
    """One timed range. A pair of clock reads and a dictionary update: about a microsecond."""

    __slots__ = ("_begin", "_event", "_name", "_recorder")

    def __init__(self, recorder: "Recorder", name: str) -> None:
        self._recorder = recorder
        self._name = name

    def __enter__(self) -> "Span":
        device = self._recorder.device
        self._event = device.begin(self._name) if device is not None else None
        self._begin = self._recorder.now()
        return self

    def __exit__(self, *problem: object) -> None:
        recorder = self._recorder
        seconds = recorder.now() - self._begin
        name = self._name
        spans = recorder.spans
        spans[name] = spans.get(name, 0.0) + seconds
        event = self._event
        if event is not None and recorder.device is not None:
            recorder.device.end(name, event)
        recorder.writer.begin()
        if recorder.borders.kind in (None, borders.SPAN):
            recorder.span_ended(name)


class Recorder:
    """The state of one recording process. `now` and `wall` are clocks, so that tests bring fake ones."""

    def __init__(
        self,
        writer: Writer,
        rank: int = 0,
        world: int = 1,
        now: Callable[[], float] = time.perf_counter,
        wall: Callable[[], float] = time.time,
        find_device: Callable[[], Optional[DeviceClock]] = find_device_clock,
    ) -> None:
        self.writer = writer
        self.rank = rank
        self.now = now
        self.wall = wall
        self.device: Optional[DeviceClock] = None
        self.stages: Any = None  # stages.Stages, where PyTorch is watched
        self.borders = borders.Borders(now)
        self.spans: Dict[str, float] = {}
        self.gauges: Dict[str, float] = {}
        self.number = 0
        self.window: Optional[str] = None  # what traces the current step
        self.busy = False  # the recorder itself holds the thread: starting or stopping a profiler
        self.last_end = now()
        self.last_step_s = 0.0
        self.step_listeners: List[Callable[[int], None]] = []
        self.closers: List[Callable[[], None]] = []
        self._find_device = find_device
        self._first_span = ""
        self.writer.put(
            {
                "k": "run",
                "v": schema.VERSION,
                "rank": rank,
                "world": world,
                "pid": os.getpid(),
                "host": _host(),
                "t": wall(),
                "env": _environment(),
            }
        )

    def span(self, name: str) -> Span:
        """A range of the current step."""
        return Span(self, name)

    def span_ended(self, name: str) -> None:
        """Where nothing else repeats, the first span that does is the step."""
        self._first_span = self._first_span or name
        if name == self._first_span and (ends := self.borders.ends(borders.SPAN)) is not False:
            self.begin_steps() if ends is None else self.step()

    def add(self, name: str, seconds: float) -> None:
        """Adds time measured elsewhere."""
        self.spans[name] = self.spans.get(name, 0.0) + seconds

    def mark(self, name: str, note: str = "") -> None:
        """An instant worth remembering."""
        self.writer.put({"k": "mark", "name": name, "note": note, "n": self.number, "t": self.wall()})
        self.writer.begin()

    def gauge(self, name: str, value: float) -> None:
        """A number that belongs to the current step."""
        self.gauges[name] = float(value)

    def begin_steps(self) -> None:
        """What came before was no step; the first begins now."""
        self.spans = {}
        self.writer.begin()
        self.last_end = self.now()

    def step(self) -> None:
        """The current step is over."""
        now = self.now()
        if self.borders.kind is None:
            self.borders.kind = borders.USER
        self.last_step_s = now - self.last_end
        line: Dict[str, Any] = {
            "k": "step",
            "n": self.number,
            "t": self.wall(),
            "d": self.last_step_s,
            "s": self.spans,
            "b": self.borders.kind,
        }
        if self.window is not None:
            line["window"] = self.window
        if self.gauges:
            line["m"] = self.gauges
            self.gauges = {}
        self.writer.put(line)
        self.writer.begin()
        self.spans = {}
        if self.device is not None:
            self.device.end_step(self.number, self.last_step_s)
            self.report_device()
        elif self.number < LOOK_FOR_DEVICE_STEPS:
            self.device = self._find_device()
        self.number += 1
        self.last_end = now
        for listener in self.step_listeners:
            listener(self.number)

    def not_the_jobs(self, seconds: float) -> None:
        """Time that the recorder itself took between steps: no step is charged with it."""
        self.last_end += seconds

    def report_device(self) -> None:
        """Writes the device times that have become known."""
        if self.device is not None:
            for number, stands_for, seconds in self.device.passed():
                self.writer.put({"k": "gpu", "n": number, "g": seconds, "of": stands_for})

    def close(self, why: str = "exit") -> None:
        """Writes the end line and what the device still owes."""
        for closer in self.closers:
            closer()
        if self.stages is not None:
            self.stages.remove()
        self.report_device()
        self.writer.put({"k": "end", "n": self.number, "t": self.wall(), "why": why})
        self.writer.close()


def _host() -> str:
    import socket

    return socket.gethostname()


def _environment() -> Dict[str, str]:
    """Settings that explain a run; nothing secret."""
    wanted = ("NCCL_", "CUDA_VISIBLE", "CUDA_LAUNCH", "OMP_NUM", "PYTORCH_", "TORCH_", "WORLD_SIZE", "LOCAL_RANK")
    return {key: value for key, value in os.environ.items() if key.startswith(wanted)}


def rank_and_world() -> Tuple[Optional[int], int]:
    """From the launcher's variables; None of 1 without a launcher."""
    for rank, world in (
        ("RANK", "WORLD_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
    ):
        if rank in os.environ:
            try:
                return int(os.environ[rank]), int(os.environ.get(world, "1"))
            except ValueError:
                return None, 1
    return None, 1
