"""CUPTI stays attached when PyTorch's profiler has stopped, and every launch of the job is slower from then on.

libkineto detaches it where TEARDOWN_CUPTI=1 stands in the environment, in a thread of its own and at the exit of the next
call into CUDA. The variable must stay until that thread has ended, so it stays for good. With CUDA graphs alive, detaching
(and attaching again) has crashed CUDA before 12.6: a job that captures graphs keeps CUPTI, and its few launches pay little.
"""

from __future__ import annotations

import os
import time
from typing import Any, Callable

VARIABLE = "TEARDOWN_CUPTI"
FEWEST_CUDA = 12  # its first versions neither detached nor attached again reliably
CALLS, EVERY_S = 20, 0.005  # calls into CUDA after the profiler has stopped, one of which detaches


class Detach:
    """Whether CUPTI goes away with the profiler."""

    def __init__(self, torch: Any, graphs: Callable[[], bool]) -> None:
        self._torch = torch
        self.graphs = graphs  # True where CUDA graphs have been captured
        self._set = False
        self.done = False  # CUPTI has been detached once

    def ask(self) -> None:
        """Before the profiler starts."""
        if VARIABLE not in os.environ and self._modern() and not self.graphs():
            os.environ[VARIABLE] = "1"
            self._set = True

    def will(self) -> bool:
        """CUPTI will leave when the profiler stops."""
        if self._set and self.graphs():
            os.environ[VARIABLE] = "0"
        return os.environ.get(VARIABLE) == "1" and self._modern()

    def not_now(self) -> None:
        """The process ends: a thread that waits for one more call into CUDA would meet its ruins."""
        if self._set:
            os.environ[VARIABLE] = "0"

    def finish(self) -> None:
        """After the profiler has stopped: the calls into CUDA that let CUPTI go, so that it happens in no step of the job."""
        self.done = True
        stream = self._torch.cuda.current_stream()
        for _ in range(CALLS):
            if self._torch.cuda.is_current_stream_capturing():
                return
            stream.query()
            time.sleep(EVERY_S)

    def _modern(self) -> bool:
        version = str(getattr(self._torch.version, "cuda", None) or "0").split(".")[0]
        return version.isdecimal() and int(version) >= FEWEST_CUDA
