"""Records a few steady steps with PyTorch's profiler, twice, then gets out of the way.

The full window has operators, shapes and launches: it gives names, and slows the host. The device window has the device's own
work alone: its kernel times are undisturbed. Untraced steps of the same run come before them, so the clean step is measured.
What starting and stopping cost is measured, written and charged to no step. Steps that run with CUPTI still attached say so.

A window opens, goes on and ends on the one thread that trains, where no other thread runs models and no other profiler is on:
PyTorch's profiler does not survive either. A thread that ends inside a window ends the window first; a daemon thread may be cut
off anywhere, so it gets none.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any, List, Optional, Tuple

from stallwise.recorder import schema
from stallwise.recorder.detach import Detach
from stallwise.recorder.error_origin import ours, say
from stallwise.recorder.own_profiler import OwnProfiler
from stallwise.recorder.recorder import Recorder
from stallwise.recorder.settling import Settling
from stallwise.recorder.thread_end import ThreadEnd

COUNT = 4  # steps: four show what varies
STEPS_BETWEEN, SECONDS_BETWEEN = (
    6,
    1.0,
)  # untraced steps between the two windows, and seconds: CUPTI leaves in its own time
AT_LEAST_S, MOST_STEPS = 0.1, 40  # a window of short steps holds more of them
AT_MOST_S = 5.0  # and one of long steps fewer
LAST_TRY = 2000  # steps after which a window that never could open is given up


_COMPILER = "_inductor"
_PROFILER = os.sep + "profiler"  # torch/profiler/..., torch/autograd/profiler.py: what they raise to us is our business


class ProfileWindow:
    """Hears of every step's end; opens and closes the windows there."""

    def __init__(self, recorder: Recorder, steps: Optional[Tuple[int, int]] = None) -> None:
        self._recorder = recorder
        self._steps = steps
        self._left: List[str] = [schema.FULL_WINDOW, schema.DEVICE_WINDOW]
        self._profiler: Any = None
        self._thread = 0  # the one that opened the window
        self._thread_end = ThreadEnd(self._close_at_the_end)
        self._kind = ""
        self._first = 0
        self._opened_s = 0.0
        self._start_s = 0.0
        self._from_s = 0.0  # on the trace's clock
        self._next = steps[0] if steps else 0
        self._next_s = 0.0
        self._settling = Settling(recorder.now)
        self._takes = 1
        self._detach: Optional[Detach] = None
        self.untraced: Optional[str] = None  # what a step is called that no window of ours traces
        self._guard: Optional[OwnProfiler] = None
        self._last_reason = ""
        recorder.step_listeners.append(self.on_step)
        recorder.closers.append(self.close)
        if "torch" in sys.modules:
            self.guard(sys.modules["torch"])  # from the first line on: a profiler of theirs may warm up for long

    @property
    def done(self) -> bool:
        """No window is open, and none will open."""
        return self._profiler is None and not self._left

    # -- the plan

    def on_step(self, number: int) -> None:
        """`number` steps have ended."""
        recorder = self._recorder
        before, recorder.window = recorder.window, self.untraced
        if before in (None, schema.AFTER):
            self._settling.add(recorder.last_step_s)
        if self._profiler is not None:
            if threading.get_ident() != self._thread:
                return  # its thread will come back to it; nobody else may touch it
            self.safely(self._advance, number)
        elif before in (schema.FULL_WINDOW, schema.DEVICE_WINDOW):
            recorder.window = schema.EDGE
        elif self._left:
            if self._due(number):
                self.safely(self._open, number)
        elif self._takes and self._steps is None and self._settling.was_too_early():
            self._takes -= 1
            self._left, self._next = [schema.FULL_WINDOW, schema.DEVICE_WINDOW], number

    def _due(self, number: int) -> bool:
        if number > LAST_TRY + self._next:
            self._left = []
            return False
        if number < self._next - 1 or self._recorder.now() < self._next_s:
            return False
        first = self._steps is None and not self._next
        return self._settling.ready(number) if first else True

    def _advance(self, number: int) -> None:
        """One more step inside the window; the first of them warmed the profiler up."""
        recorder, now = self._recorder, self._recorder.now()
        if number - 1 < self._first:
            self._opened_s = now
        inside = number - self._first
        enough_s, most = AT_LEAST_S, MOST_STEPS
        wanted = (self._steps[1] - self._steps[0] + 1) if self._steps else COUNT
        if self._steps:
            enough_s = 0.0
        passed_s = now - self._opened_s
        full = inside >= wanted and (passed_s >= enough_s or inside >= most)
        if full or (inside >= 1 and passed_s > AT_MOST_S):
            self._close(number)
            recorder.window = schema.EDGE
            return
        began = time.perf_counter()
        self.guarded(self._profiler.step)
        recorder.not_the_jobs(time.perf_counter() - began)
        recorder.window = self._kind

    # -- opening and closing

    def _may_open(self, torch: Any) -> Optional[str]:
        stages = self._recorder.stages
        if threading.current_thread().daemon:
            return "the training runs in a daemon thread, which may be cut off inside a window"
        if stages is not None and stages.other_threads:
            return "several threads run models at once"
        return self.guard(torch).on()

    def guard(self, torch: Any) -> OwnProfiler:
        """What tells our profiler from the job's; one for all windows."""
        if self._guard is None:
            self._guard = OwnProfiler(torch)
            self._guard.make_way.append(self.make_way)
        return self._guard

    def _open(self, number: int) -> None:
        torch = sys.modules.get("torch")
        if torch is None:
            return
        cuda = torch.cuda.is_initialized()
        if self._left[0] == schema.DEVICE_WINDOW and not cuda:
            self._left = []  # no device: the full window has told all
            return
        why = self._may_open(torch)
        if why is not None:
            if why != self._last_reason:
                self._last_reason = why
                self._recorder.mark("no trace", why)
            return
        stages = self._recorder.stages
        if cuda and self._detach is None:
            self._detach = Detach(torch, lambda: bool(stages is not None and stages.captured_graphs))
        if self._detach is not None and self._detach.done and self._detach.graphs():
            self._left = []  # attaching CUPTI once more beside CUDA graphs is not safe
            return
        began = time.perf_counter()
        self._settling.window_opens()
        if self._detach is not None:
            self._detach.ask()
        self._kind = self._left[0]
        profiler = torch.profiler
        device = [profiler.ProfilerActivity.CUDA] if cuda else []
        full = self._kind == schema.FULL_WINDOW
        action = profiler.ProfilerAction
        self._profiler = profiler.profile(
            activities=[profiler.ProfilerActivity.CPU, *device] if full else device,
            schedule=lambda n: action.WARMUP if n <= number else action.RECORD,
            on_trace_ready=self._write,
            record_shapes=full,
        )
        self._profiler.step_num = number
        self._profiler.current_action = action.WARMUP
        self._first = number + 1
        self._opened_s = self._recorder.now()
        self._thread = threading.get_ident()
        if threading.current_thread() is not threading.main_thread():
            self._thread_end.ask()
        self.guarded(self._profiler.start)
        self._from_s = self._recorder.wall()
        self._start_s = time.perf_counter() - began
        self._recorder.not_the_jobs(self._start_s)
        self._recorder.window = schema.EDGE

    def _close(self, number: int) -> None:
        profiler, self._profiler = self._profiler, None
        self._thread_end.forget()
        began, to_s = time.perf_counter(), self._recorder.wall()
        leaves = self._detach is not None and self._detach.will()
        self.guarded(profiler.stop)
        profiler.action_map = None  # the cycle that would keep the whole trace until the collector comes by
        if self._detach is not None:
            if leaves:
                self.guarded(self._detach.finish)
            else:
                self.untraced = schema.AFTER
        stop_s = time.perf_counter() - began
        self._recorder.not_the_jobs(stop_s)
        kind, first, last = self._kind, self._first, number - 1
        self._left = self._left[1:] if self._detach is not None else []  # without a device the full window shows all
        self._next, self._next_s = number + STEPS_BETWEEN + 1, self._recorder.now() + SECONDS_BETWEEN
        self._last_reason = ""
        if last < first:
            return
        self._recorder.writer.put(
            {
                "k": "window", "window": kind, "first": first, "last": last, "file": schema.TRACE_FILES[kind],
                "from": self._from_s, "to": to_s, "start_s": round(self._start_s, 6), "stop_s": round(stop_s, 6),
                "tid": threading.get_native_id(),
            }
        )  # fmt: skip

    def _write(self, profiler: Any) -> None:
        folder = schema.folder_name(self._recorder.writer.path)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, schema.TRACE_FILES[self._kind])
        profiler.export_chrome_trace(path + ".part.gz")
        os.replace(path + ".part.gz", path)
        by_time = os.path.join(folder, schema.TRACE_FILES[schema.TIME_WINDOW])
        if self._kind == schema.FULL_WINDOW and os.path.exists(by_time):
            os.unlink(by_time)  # it showed what came before the steps

    def make_way(self) -> None:
        """The job starts a profiler of its own: ours ends at once and its trace is thrown away."""
        profiler = self._profiler
        if profiler is None or threading.get_ident() != self._thread:
            return
        self._profiler = None
        self._thread_end.forget()
        profiler.on_trace_ready = None
        self._recorder.mark("no trace", "the job started its own profiler inside our window")
        self.safely(self.guarded, profiler.stop)

    def close(self) -> None:
        """The job ends, perhaps inside a window."""
        self._close_at_the_end()
        self._left = []
        if self._guard is not None:
            self._guard.remove()

    def _close_at_the_end(self) -> None:
        """Of the job, or of the thread that trains."""
        if self._profiler is not None and threading.get_ident() == self._thread:
            if self._detach is not None:
                self._detach.not_now()
            self.safely(self._close, self._recorder.number)

    def guarded(self, call: Any) -> None:
        """Calls the profiler as ours: it warns nobody, and imports no compiler that the job has not imported itself."""
        self._recorder.busy = True
        module: Any = sys.modules.get("torch.profiler.profiler")
        warn = getattr(module, "_warn_once", None)
        if warn is not None:  # what it warns of is our use of it, none of the job's
            module._warn_once = lambda *args, **kwargs: None
        torch = sys.modules["torch"]
        lazy: Any = vars(torch).get("_lazy_modules")  # asking for one imports it, which takes seconds
        hidden = isinstance(lazy, set) and _COMPILER in lazy and "torch." + _COMPILER not in sys.modules
        if hidden:
            lazy.discard(_COMPILER)
        try:
            with self.guard(torch).by_us():
                call()
        finally:
            if hidden:
                lazy.add(_COMPILER)
            if warn is not None:
                module._warn_once = warn
            self._recorder.busy = False

    def safely(self, call: Any, *args: Any) -> None:
        """The profiler's own trouble ends the window, not the job."""
        try:
            call(*args)
        except Exception as error:
            if not ours(error) and _PROFILER not in _file(error):
                raise
            self._profiler, self._left = None, []
            say("no trace (%s: %s); the job goes on" % (type(error).__name__, error))


def _file(error: BaseException) -> str:
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at.tb_frame.f_code.co_filename if at is not None else ""


def parse_steps(text: Optional[str]) -> Optional[Tuple[int, int]]:
    """ "10:14" means steps 10 to 14; nothing means what suits the job."""
    if not text:
        return None
    first, _, last = text.partition(":")
    return int(first), int(last or first)
