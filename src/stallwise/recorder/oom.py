"""The first out-of-memory error of the device leaves a snapshot of the allocator beside the trace."""

from __future__ import annotations

import os
import sys

from stallwise.recorder import schema
from stallwise.recorder.recorder import Recorder


def watch_oom(recorder: Recorder) -> None:
    """Attaches once CUDA lives; never initialises it (a forked child could not use it any more)."""
    attached = False

    def on_step(number: int) -> None:
        nonlocal attached
        if attached or recorder.device is None:
            return
        attached = True
        torch = sys.modules["torch"]
        attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is not None:
            attach(observe)

    reported = False

    def observe(device: int, wanted: int, total: int, free: int) -> None:
        nonlocal reported
        if reported:  # a job that looks for its batch size by trial meets many
            return
        reported = True
        try:
            folder = schema.folder_name(recorder.writer.path)
            os.makedirs(folder, exist_ok=True)
            sys.modules["torch"].cuda.memory._dump_snapshot(os.path.join(folder, "memory.pickle"))
        except Exception:
            pass  # called by the allocator, in the middle of an error of the user's

    recorder.step_listeners.append(on_step)
