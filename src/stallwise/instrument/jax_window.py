"""A window of JAX's own profiler, opened by time: a compiled JAX loop shows Python no steps.

JAX says when it has compiled something, and its frames show while it does; the window opens when neither was seen for a while.
The thread is never left inside the
profiler when the interpreter ends: it would be torn down between two C++ frames, and the job with it.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
import threading
import time
from typing import Any, Optional

from stallwise.instrument import schema, threads
from stallwise.instrument.blame import say
from stallwise.instrument.recorder import Recorder

QUIET_S = 2.0  # without compilation: the loop runs
AT_LATEST_S = 60.0  # after the import, whatever it still compiles
EARLIEST_S = 3.0
LOOK_EVERY_S = 0.2
FOR_S = 0.5
JOIN_S = 60.0  # the end waits for a window that is being written; it takes a second or two
COMPILES = "compile"  # in the names of JAX's own events and functions
LIBRARY = os.sep + "jax" + os.sep
TRACE = schema.TRACE_FILES[schema.FULL_WINDOW]


class JaxWindow:
    """A daemon thread; JAX's profiler is one for the process and may be used from any thread."""

    def __init__(self, recorder: Recorder, jax: Any) -> None:
        self._recorder = recorder
        self._jax = jax
        self._quit = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._compiled_s = 0.0

    def start(self) -> None:
        """Waits for its time."""
        monitoring = getattr(self._jax, "monitoring", None)
        listen = getattr(monitoring, "register_event_duration_secs_listener", None)
        if listen is not None:
            listen(self._heard)
        self._recorder.closers.append(self.close)
        self._thread = threads.begin(self._run, "stallwise-jax")

    def close(self) -> None:
        """The job ends: an open window is closed first, on its own thread."""
        self._quit.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)

    def _heard(self, event: str, *args: Any, **kwargs: Any) -> None:
        if COMPILES in event:
            self._compiled_s = time.monotonic()

    def _run(self) -> None:
        if not self._settled():
            return
        if "torch" in sys.modules and self._recorder.borders.kind is not None:
            return  # the loop is PyTorch's
        self._recorder.writer.begin()
        try:
            self._record()
        except Exception as error:  # a profiler of the user's is on, or JAX is of a kind that we do not know
            self._recorder.mark("no trace", "%s: %s" % (type(error).__name__, str(error)[:200]))

    def _settled(self) -> bool:
        """True when it is time; False when the job ended before."""
        began = time.monotonic()
        while not self._quit.wait(LOOK_EVERY_S):
            now = time.monotonic()
            if compiles_now():
                self._compiled_s = now
            quiet = self._compiled_s > 0 and now - self._compiled_s > QUIET_S
            if (quiet and now - began > EARLIEST_S) or now - began > AT_LATEST_S:
                return True
        return False

    def _record(self) -> None:
        profiler, folder = self._jax.profiler, tempfile.mkdtemp(prefix="stallwise-jax-")
        try:
            before = time.perf_counter()
            profiler.start_trace(folder, **_few_details(profiler))
            started = time.perf_counter()
            self._recorder.window = schema.FULL_WINDOW
            self._quit.wait(FOR_S)
            stopping = time.perf_counter()
            profiler.stop_trace()
            self._recorder.window = None
            found = glob.glob(os.path.join(folder, "**", "*.trace.json.gz"), recursive=True)
            if not found:
                self._recorder.mark("no trace", "JAX wrote no trace")
                return
            target = schema.folder_name(self._recorder.writer.path)
            os.makedirs(target, exist_ok=True)
            shutil.move(found[0], os.path.join(target, TRACE))
            self._recorder.writer.put(
                {
                    "k": "window", "window": schema.FULL_WINDOW, "first": -1, "last": -1, "file": TRACE,
                    "start_s": round(started - before, 6), "stop_s": round(time.perf_counter() - stopping, 6),
                }
            )  # fmt: skip
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def compiles_now() -> bool:
    """Some thread is inside JAX's compiler: one compilation may take minutes, and JAX tells of it only afterwards."""
    for frame in sys._current_frames().values():
        at: Any = frame
        while at is not None:
            code = at.f_code
            if COMPILES in code.co_name and LIBRARY in code.co_filename:
                return True
            at = at.f_back
    return False


def _few_details(profiler: Any) -> Any:
    """Python's own calls are what our stacks tell for less."""
    options = getattr(profiler, "ProfileOptions", None)
    if options is None:
        return {}
    try:
        chosen = options()
        chosen.python_tracer_level = 0
        chosen.host_tracer_level = 2
        return {"profiler_options": chosen}
    except Exception as error:
        say("jax profiler options: %s" % error)
        return {}
