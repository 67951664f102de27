"""One profiler at a time, and the user's wins: ours waits while theirs runs and makes way the moment theirs begins."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional

from stallwise.recorder.patches import Patches

# Set by nsys, ncu and the like: they hold the device's counters for the whole life of the process.
OTHER_TOOLS = (
    "NSYS_PROFILING_SESSION_ID",
    "NV_NSIGHT_INJECTION_TRANSPORT_TYPE",
    "CUDA_INJECTION64_PATH",
    "INTEL_LIBITTNOTIFY64",
)


class OwnProfiler:
    """Knows whether a profiler of the user's is on. `make_way` ends ours; each is called before theirs begins."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._module = torch.autograd.profiler
        self.make_way: List[Callable[[], None]] = []
        self._patches = Patches()
        self._our_thread = 0  # calls into the profiler from there are our own just now
        self._theirs = False  # prepared (a scheduled one warms up before it is on) and not yet stopped
        for name in ("_prepare_profiler", "_enable_profiler"):
            self._patches.wrap(self._module, name, self._beginning)
        self._patches.wrap(self._module, "_disable_profiler", self._ending)

    def _beginning(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != self._our_thread:
                for end_ours in list(self.make_way):
                    end_ours()
                self._theirs = True
            return call(*args, **kwargs)

        return wrapped

    def _ending(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != self._our_thread:
                self._theirs = False
            return call(*args, **kwargs)

        return wrapped

    @contextmanager
    def by_us(self) -> Iterator[None]:
        """What this thread asks of the profiler in here, we ask."""
        self._our_thread = threading.get_ident()
        try:
            yield
        finally:
            self._our_thread = 0

    def on(self) -> Optional[str]:
        """Why no profiler of ours may start now, or None."""
        for name in OTHER_TOOLS:
            if os.environ.get(name):
                return "another tool (%s) is tracing this process" % name
        if (
            self._theirs
            or getattr(self._module, "_is_profiler_enabled", False)
            or self._torch._C._autograd._profiler_enabled()
        ):
            return "the job's own profiler is on"
        return None

    def remove(self) -> None:
        """PyTorch's functions are its own again."""
        self._patches.remove()
