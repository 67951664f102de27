"""A window of JAX's own profiler, opened by time: a compiled JAX loop shows Python no steps."""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
import threading
import time
from typing import Any

from stallwise.instrument import schema
from stallwise.instrument.blame import say
from stallwise.instrument.recorder import Recorder

AFTER_S = (4.0, 20.0)  # of the import: compilation of small programs is over; large ones get a second try
FOR_S = 0.5
TRACE = "trace_full.json.gz"


class JaxWindow:
    """A daemon thread; JAX's profiler is one for the process and may be used from any thread."""

    def __init__(self, recorder: Recorder, jax: Any) -> None:
        self._recorder = recorder
        self._jax = jax
        self._quit = threading.Event()

    def start(self) -> None:
        """Waits for its time."""
        self._recorder.closers.append(self._quit.set)
        threading.Thread(target=self._run, name="stallwise-jax", daemon=True).start()

    def _run(self) -> None:
        began = time.monotonic()
        for after_s in AFTER_S:
            if self._quit.wait(max(began + after_s - time.monotonic(), 0.0)):
                return
            if "torch" in sys.modules and self._recorder.borders.kind is not None:
                return  # the loop is PyTorch's
            self._recorder.writer.begin()
            try:
                self._record()
            except Exception as error:  # a profiler of the user's is on, or JAX is of a kind that we do not know
                self._recorder.mark("no trace", "%s: %s" % (type(error).__name__, str(error)[:200]))

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
