"""What `stallwise record` puts into the user's process: starts a recording as soon as torch is there, or never.

Runs from `sitecustomize`, before the user's first line. It must be quick, silent and harmless: any failure of ours is
swallowed, and a process that never trains (a launcher, a loader worker, a compiler) leaves no file behind.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Optional

FOLDER = "STALLWISE_FOLDER"
STEPS = "STALLWISE_STEPS"
LIGHT = "STALLWISE_LIGHT"


def begin() -> None:
    """Called once per Python process under `stallwise record`."""
    folder = os.environ.get(FOLDER)
    if not folder or _is_helper_process():
        return
    try:
        from stallwise.instrument.stages import after_import

        after_import("torch", lambda torch: _start(torch, folder))
    except Exception as error:
        sys.stderr.write("stallwise: not recording (%s); the job goes on\n" % error)


def _is_helper_process() -> bool:
    """Loader workers, resource trackers and compile workers are Python too, but nobody's training loop."""
    words = " ".join(sys.orig_argv) if hasattr(sys, "orig_argv") else " ".join(sys.argv)
    return any(
        w in words
        for w in ("multiprocessing.", "compile_worker", "resource_tracker", "torch.distributed.run", "torchrun")
    )


def _start(torch: Any, folder: str) -> None:
    from stallwise.instrument import recorder as recorders
    from stallwise.instrument import verbs

    verbs.start(folder)
    recording = verbs.recording()
    if recording is None or os.environ.get(LIGHT):
        return
    from stallwise.instrument.profile_window import ProfileWindow, parse_steps

    first, last = parse_steps(os.environ.get(STEPS))
    rank, _ = recorders.rank_and_world()
    window = ProfileWindow(recording, os.path.join(folder, "rank-%05d" % rank), first, last)
    import atexit

    atexit.register(window.finish)
    _snapshot_on_oom(torch, os.path.join(folder, "rank-%05d" % rank))


def _snapshot_on_oom(torch: Any, folder: str) -> None:
    """An out-of-memory error leaves a memory snapshot beside the trace."""
    attach = getattr(getattr(torch, "_C", None), "_cuda_attach_out_of_memory_observer", None)
    if attach is None or not torch.cuda.is_available():
        return

    def observe(device: int, wanted: int, total: int, free: int) -> None:
        try:
            os.makedirs(folder, exist_ok=True)
            torch.cuda.memory._dump_snapshot(os.path.join(folder, "memory.pickle"))
        except Exception:
            pass

    torch.cuda.memory._record_memory_history(max_entries=20_000, stacks="python")
    attach(observe)


def chained(own_folder: Optional[str]) -> None:
    """Runs the sitecustomize that ours hides, if the user has one."""
    paths = [p for p in sys.path if os.path.abspath(p or ".") != own_folder]
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize", paths)
    if spec is not None and spec.loader is not None:
        import importlib.util

        spec.loader.exec_module(importlib.util.module_from_spec(spec))
