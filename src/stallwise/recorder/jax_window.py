"""A window of JAX's own profiler, opened by time: a compiled JAX loop shows Python no steps.

JAX says when it has compiled something, and its frames show while it does; the window opens when neither was seen for a while.
Stopping JAX's profiler detaches CUPTI, which may break the job's next call into CUDA where work is still under way. So the main
thread itself opens and closes the window, between two lines outside of JAX, after all that it has asked of the device is done.
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

from stallwise.recorder import schema, threads
from stallwise.recorder.error_origin import say
from stallwise.recorder.frames import current_frames
from stallwise.recorder.on_main_thread import OnMainThread
from stallwise.recorder.recorder import Recorder

QUIET_S = 2.0  # without compilation: the loop runs
AT_LATEST_S = 60.0  # after the import, whatever it still compiles
EARLIEST_S = 3.0
LOOK_EVERY_S = 0.2
FOR_S = 0.5
COMPILES = "compile"  # in the names of JAX's own events and functions
LIBRARY = os.path.join(os.sep + "jax", "_src", "")
IDLE_S = 0.05  # after all arrays are there: threads of XLA's own come to rest
TRACE = schema.TRACE_FILES[schema.FULL_WINDOW]


class JaxWindow:
    """A daemon thread waits for the time; the main thread does what is done."""

    def __init__(self, recorder: Recorder, jax: Any) -> None:
        self._recorder = recorder
        self._jax = jax
        self._main = OnMainThread()
        self._quit = threading.Event()
        self._asked = False
        self._opened = threading.Event()
        self._folder = ""  # where JAX writes while the window is open
        self._start_s = 0.0
        self._compiled_s = 0.0

    def start(self) -> None:
        """Waits for its time."""
        monitoring = getattr(self._jax, "monitoring", None)
        listen = getattr(monitoring, "register_event_duration_secs_listener", None)
        if listen is not None:
            listen(self._on_event)
        self._recorder.closers.append(self.close)
        threads.begin(self._run, "stallwise-jax")

    def close(self) -> None:
        """The job ends: an open window is closed first."""
        self._quit.set()
        self._main.forget()
        if self._asked and not self._opened.is_set():
            self._recorder.mark("no trace", "the main thread came by no line of its own after the loop had settled")
        if threading.current_thread() is threading.main_thread():
            self._stop()

    def _on_event(self, event: str, *args: Any, **kwargs: Any) -> None:
        if COMPILES in event:
            self._compiled_s = time.monotonic()

    def _run(self) -> None:
        if not self._settled():
            return
        if "torch" in sys.modules and self._recorder.boundaries.kind is not None:
            return  # the loop is PyTorch's
        self._recorder.writer.begin()
        if not self._main.possible():
            self._recorder.mark("no trace", "a window of JAX needs Python 3.12")
            return
        self._asked = self._main.call(self._begin, outside_of_jax)
        if not self._asked:
            return
        while not self._opened.is_set():
            if self._quit.wait(LOOK_EVERY_S):
                return
        if not self._quit.wait(FOR_S):
            self._main.call(self._stop, outside_of_jax)

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

    def _begin(self) -> None:
        """On the main thread."""
        self._asked = False
        if others_in_jax():
            self._recorder.mark("no trace", "several threads use JAX at once")
            self._quit.set()
            return
        before = time.perf_counter()
        self._at_rest()
        folder = tempfile.mkdtemp(prefix="stallwise-jax-")
        self._recorder.busy = True
        try:
            self._jax.profiler.start_trace(folder, **_few_details(self._jax.profiler))
        except Exception as error:  # a profiler of the user's is on, or JAX is of a kind that we do not know
            self._recorder.mark("no trace", "%s: %s" % (type(error).__name__, str(error)[:200]))
            shutil.rmtree(folder, ignore_errors=True)
            self._quit.set()
            return
        finally:
            self._recorder.busy = False
        self._folder, self._start_s = folder, time.perf_counter() - before
        self._recorder.window = schema.FULL_WINDOW
        self._opened.set()

    def _stop(self) -> None:
        """On the main thread, which therefore asks nothing of the device meanwhile."""
        folder, self._folder = self._folder, ""
        if not folder:
            return
        before = time.perf_counter()
        self._recorder.busy = True
        try:
            self._at_rest()
            self._jax.profiler.stop_trace()
            self._recorder.window = None
            self._keep(folder, time.perf_counter() - before)
        except Exception as error:
            self._recorder.mark("no trace", "%s: %s" % (type(error).__name__, str(error)[:200]))
        finally:
            self._recorder.busy = False
            shutil.rmtree(folder, ignore_errors=True)

    def _keep(self, folder: str, stop_s: float) -> None:
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
                "start_s": round(self._start_s, 6), "stop_s": round(stop_s, 6),
            }
        )  # fmt: skip

    def _at_rest(self) -> None:
        """All that was asked of the device is done. What went wrong there, the job will hear from its own call."""
        for array in self._jax.live_arrays():
            try:
                array.block_until_ready()
            except Exception:
                continue
        time.sleep(IDLE_S)


def outside_of_jax() -> bool:
    """No frame of this thread is JAX's: it holds none of JAX's locks and traces nothing."""
    return not _in_jax(sys._getframe())


def others_in_jax() -> bool:
    """Another thread is inside JAX."""
    me = threading.get_ident()
    return any(_in_jax(frame) for thread, frame in current_frames().items() if thread != me)


def compiles_now() -> bool:
    """Some thread is inside JAX's compiler: one compilation may take minutes, and JAX tells of it only afterwards."""
    return any(_in_jax(frame, COMPILES) for frame in current_frames().values())


def _in_jax(frame: Optional[Any], name: str = "") -> bool:
    while frame is not None:
        code = frame.f_code
        if name in code.co_name and LIBRARY in code.co_filename:
            return True
        frame = frame.f_back
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
