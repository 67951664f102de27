"""Collects spans, marks and gauges of the current step and hands one line a step to the writer."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from stallwise.instrument import schema
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
        self._event = device.stamp() if device is not None else None
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
            recorder.device.pair(name, event, recorder.device.stamp())


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
        self.spans: Dict[str, float] = {}
        self.gauges: Dict[str, float] = {}
        self.number = 0
        self.borders_from_optimizer = True  # a framework that knows its own steps switches this off
        self.last_end = now()
        self.step_listeners: List[Callable[[int], None]] = []
        self._find_device = find_device
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

    def step(self) -> None:
        """The current step is over."""
        now = self.now()
        line: Dict[str, Any] = {
            "k": "step",
            "n": self.number,
            "t": self.wall(),
            "d": now - self.last_end,
            "s": self.spans,
        }
        if self.gauges:
            line["m"] = self.gauges
            self.gauges = {}
        self.writer.put(line)
        self.writer.begin()
        self.spans = {}
        self.last_end = now
        if self.device is not None:
            self.device.end_step(self.number)
            self.report_device()
        elif self.number < LOOK_FOR_DEVICE_STEPS:
            self.device = self._find_device()
        self.number += 1
        for listener in self.step_listeners:
            listener(self.number)

    def report_device(self) -> None:
        """Writes the device times that have become known."""
        if self.device is not None:
            for number, seconds in self.device.passed():
                self.writer.put({"k": "gpu", "n": number, "g": seconds})

    def close(self, why: str = "exit") -> None:
        """Writes the end line and what the device still owes."""
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


def rank_and_world() -> Tuple[int, int]:
    """From the launcher's variables; 0 of 1 without a launcher."""
    for rank, world in (
        ("RANK", "WORLD_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
    ):
        if rank in os.environ:
            try:
                return int(os.environ[rank]), int(os.environ.get(world, "1"))
            except ValueError:
                return 0, 1
    return 0, 1
