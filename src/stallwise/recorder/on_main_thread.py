"""Has the main thread call something between two of its lines, once. Needs Python 3.12; before, there is no way that is safe.

The call comes as a tracer's would: what a handler of the user's raises inside it goes on its way to the user. Only the main
thread may start and stop PyTorch's profiler, and a program without modules, optimizers or loaders never comes by our code.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Optional

NAME = "stallwise"
IDS = (4, 3)  # what debuggers, coverage and profilers leave free


class OnMainThread:
    """One call at a time."""

    def __init__(self) -> None:
        self._monitoring: Any = getattr(sys, "monitoring", None)
        self._tool: Optional[int] = None

    def possible(self) -> bool:
        """This Python can."""
        return self._monitoring is not None

    def call(self, then: Callable[[], None], may: Callable[[], bool] = lambda: True) -> bool:
        """`then()` will run on the main thread, soon, where it `may`; False where somebody else holds what it takes."""
        monitoring = self._monitoring
        tool = next((i for i in IDS if monitoring.get_tool(i) is None), None)
        if tool is None:
            return False
        monitoring.use_tool_id(tool, NAME)
        self._tool = tool

        def on_line(code: Any, line: int) -> None:
            if threading.current_thread() is threading.main_thread() and self._tool is not None and may():
                self.forget()
                then()

        monitoring.register_callback(tool, monitoring.events.LINE, on_line)
        monitoring.set_events(tool, monitoring.events.LINE)
        return True

    def forget(self) -> None:
        """No call any more; nothing of ours is left in the interpreter."""
        tool, self._tool = self._tool, None
        if tool is not None:
            self._monitoring.set_events(tool, 0)
            self._monitoring.register_callback(tool, self._monitoring.events.LINE, None)
            self._monitoring.free_tool_id(tool)
