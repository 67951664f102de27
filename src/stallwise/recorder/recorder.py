"""Collects spans, marks and gauges of the current step and hands one line a step to the writer."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from stallwise.recorder import schema, step_boundaries, suspension
from stallwise.recorder.device_clock import DeviceClock, find_device_clock
from stallwise.recorder.frames import Place
from stallwise.recorder.memory_account import host_memory
from stallwise.recorder.span import Span
from stallwise.recorder.thread_clock import ThreadClock
from stallwise.recorder.writer import Writer

_ident = threading.get_ident
SAME_S = 1e-6  # less is what reading the clock takes
FORGET_EVERY_STEPS = 64  # threads that have ended
LOOK_FOR_DEVICE_STEPS = 20  # CUDA starts with the first kernel, so look again for a while, then stop asking

Part = Tuple[float, float, Dict[str, float], Dict[str, float]]  # clock, wall, seconds by stage and by row so far


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
        self.boundaries = step_boundaries.StepBoundaries(now)
        self.thread: Optional[int] = (
            None  # the one that trains: the last that ended a step, or the first that called a model
        )
        self.clocks: Dict[int, ThreadClock] = {}  # by thread
        self.training = ThreadClock(now)  # of the one that trains; of nobody before there is one
        self.collected_s = 0.0  # by Python's garbage collector in this step, whatever stage it fell into
        self.collected_at: Deque[Tuple[List[Place], int]] = deque(
            maxlen=1000
        )  # where it began, and looks it would have had
        self.gauges: Dict[str, float] = {}
        self.number = 0
        self.window: Optional[str] = None  # what traces the current step
        self.busy = False  # the recorder itself holds the thread: starting or stopping a profiler
        self.last_end = now()
        self.last_step_s = 0.0
        self.step_listeners: List[Callable[[int], None]] = []
        self.closers: List[Callable[[], None]] = []
        self._find_device = find_device
        self._first_span = ("", 0)
        self._parts: List[Part] = []  # of a round: where the turn of another optimizer than the leader ended
        self.writer.put(
            {
                "k": "run",
                "v": schema.VERSION,
                "rank": rank,
                "world": world,
                "pid": os.getpid(),
                "host": _host(),
                "host_memory": host_memory(),
                "t": wall(),
                "env": _environment(),
            }
        )

    def span(self, name: str) -> Span:
        """A range of the current step."""
        return Span(self, name)

    def clock(self) -> ThreadClock:
        """Of the calling thread."""
        me = _ident()
        clock = self.clocks.get(me)
        if clock is None:
            clock = self.clocks[me] = ThreadClock(self.now)
        return clock

    @property
    def stage(self) -> Optional[str]:
        """The stage in which the training thread is, or None."""
        owner = self.training.owner
        return owner if owner != schema.COMPILED else None

    def trains_on(self, thread: int) -> None:
        """The calling thread's calls are the job's; the device's time is taken beside them."""
        self.thread = thread
        self.training.device = None
        self.training = self.clock()
        self.training.device = self.device

    def span_ended(self, name: str) -> None:
        """Where nothing else repeats, the first span that does is the step."""
        this = name, _ident()
        if not self._first_span[0]:
            self._first_span = this
        if this == self._first_span:
            self.on_sign(self.boundaries.sign(step_boundaries.SPAN))

    def on_sign(self, sign: str) -> None:
        """Something repeated that may end a step."""
        if sign == step_boundaries.ENDS:
            self.step()
        elif sign == step_boundaries.PART:
            self.part()
        elif sign == step_boundaries.BEGINS:
            self.begin_steps()
        elif sign == step_boundaries.TAKES_OVER:
            self.split()

    def mark(self, name: str, note: str = "") -> None:
        """An instant worth remembering."""
        self.writer.put({"k": "mark", "name": name, "note": note, "n": self.number, "t": self.wall()})
        self.writer.begin()

    def gauge(self, name: str, value: float) -> None:
        """A number that belongs to the current step."""
        self.gauges[name] = float(value)

    def begin_steps(self) -> None:
        """What came before was no step; the first begins now."""
        now_s = self.now()
        self.trains_on(_ident())
        boundary = self.device.boundary() if self.device is not None else None
        for clock in list(self.clocks.values()):
            clock.cut(now_s, boundary if clock.device is not None else None)
        if self.device is not None:
            self.device.end_step(self.number, now_s - self.last_end, whole=False)
        self._parts = []
        self.collected_s = 0.0
        self.writer.begin()
        self.last_end = now_s

    def part(self) -> None:
        """The turn of an optimizer that does not end steps is over: remembered, should it turn out that it does."""
        now_s = self.now()
        self._parts.append((now_s, self.wall(), *self.clock().so_far(now_s)))

    def split(self) -> None:
        """The parts since the last step were steps of their own, and one more ends now."""
        parts, self._parts = self._parts, []
        before: Tuple[Dict[str, float], Dict[str, float]] = {}, {}
        for now_s, wall_s, stages, rows in parts:
            self._put(now_s, wall_s, _less(stages, before[0]), _less(rows, before[1]))
            before = stages, rows
        self._end(before)

    def step(self) -> None:
        """The current step is over."""
        if self._parts:
            self._parts = []
        self._end(None)

    def _end(self, written: Optional[Tuple[Dict[str, float], Dict[str, float]]]) -> None:
        """Ends a step; of what its clock holds, some may be `written` already."""
        now_s, me = self.now(), _ident()
        if self.boundaries.kind is None:
            self.boundaries.lead(step_boundaries.USER)
        if me != self.thread:
            self.trains_on(me)
        device, number = self.device, self.number
        boundary = device.boundary() if device is not None else None
        stages, rows = self.training.cut(now_s, boundary)
        if schema.COMPILED in stages:  # still inside a compiled function
            seconds = stages.pop(schema.COMPILED)
            if schema.BACKWARD in stages:
                stages[schema.FORWARD] = stages.get(schema.FORWARD, 0.0) + seconds
        if written is not None:
            stages, rows = _less(stages, written[0]), _less(rows, written[1])
        self._put(now_s, self.wall(), stages, rows, self._elsewhere(me, now_s) if len(self.clocks) > 1 else None)
        if self.writer.thread is None:
            self.writer.begin()
        if device is not None:
            device.end_step(number, self.last_step_s, whole=written is None)
            self.report_device()
        elif number < LOOK_FOR_DEVICE_STEPS:
            self.device = self.training.device = self._find_device()
            if self.device is not None:
                self.device.begin_step()
        for listener in self.step_listeners:
            listener(number + 1)

    def _put(
        self,
        now_s: float,
        wall_s: float,
        stages: Dict[str, float],
        rows: Dict[str, float],
        others: Optional[Dict[str, float]] = None,
    ) -> None:
        """The line of a step that ended at `now_s`."""
        number = self.number
        self.last_step_s = took_s = now_s - self.last_end
        self.last_end = now_s
        self.number = number + 1
        line: Dict[str, Any] = {
            "k": "step",
            "n": number,
            "t": wall_s,
            "d": took_s,
            "s": stages,
            "b": self.boundaries.kind,
        }
        if rows:  # a span that is a stage with nothing else in it stands there already
            rows = {name: s for name, s in rows.items() if abs(s - stages.get(name, 0.0)) >= SAME_S}
        if self.collected_s:
            rows[schema.COLLECTION] = rows.get(schema.COLLECTION, 0.0) + self.collected_s
            self.collected_s = 0.0
        if rows:
            line["u"] = rows
        if others:
            line["o"] = others
        if self.window is not None:
            line["window"] = self.window
        if self.gauges:
            line["m"] = self.gauges
            self.gauges = {}
        self.writer.put(line)

    def _elsewhere(self, me: int, now_s: float) -> Dict[str, float]:
        """Spans of other threads while this step ran; theirs is not its time."""
        seconds: Dict[str, float] = {}
        alive = {thread.ident for thread in threading.enumerate()} if self.number % FORGET_EVERY_STEPS == 0 else None
        for ident, clock in list(self.clocks.items()):
            if ident == me:
                continue
            _, rows = clock.cut(now_s)
            for name, value in list(rows.items()):  # that thread may still be writing into it
                seconds[name] = seconds.get(name, 0.0) + value
            if alive is not None and ident not in alive:
                self.clocks.pop(ident, None)
        return seconds

    def not_the_jobs(self, seconds: float) -> None:
        """Time that the recorder itself took between steps: no step and no open range is charged with it."""
        self.last_end += seconds
        self.training.skip(seconds)

    def report_device(self) -> None:
        """Writes the device times that have become known."""
        if self.device is not None:
            for number, stands_for, took_s, stages, rows in self.device.passed():
                line = {"k": "gpu", "n": number, "d": took_s, "g": stages, "of": stands_for}
                rows = {name: s for name, s in rows.items() if abs(s - stages.get(name, 0.0)) >= SAME_S}
                if rows:
                    line["u"] = rows
                self.writer.put(line)

    def close(self, why: str = "exit") -> None:
        """Writes the end line and what the device still owes."""
        for closer in self.closers:
            closer()
        if self.stages is not None:
            self.stages.remove()
        suspension.end()
        self.report_device()
        self.writer.put({"k": "end", "n": self.number, "t": self.wall(), "why": why})
        self.writer.close()


def _less(seconds: Dict[str, float], before: Dict[str, float]) -> Dict[str, float]:
    """What has come since."""
    grown = ((name, value - before.get(name, 0.0)) for name, value in seconds.items())
    return {name: value for name, value in grown if value > 0.0}


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
