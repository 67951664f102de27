"""What `stallwise record` puts into the user's process: starts a recording once a framework is there or a verb is used, or never.

Runs from `sitecustomize`, before the user's first line. It must be quick, silent and harmless: a process that never trains (a
launcher, a loader worker, a compiler) leaves no record behind, only a line in `processes.jsonl` that says it was seen.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Optional

from stallwise.recorder.error_origin import quietly, say

FOLDER = "STALLWISE_FOLDER"
STEPS = "STALLWISE_STEPS"
LIGHT = "STALLWISE_LIGHT"
TRY = "STALLWISE_TRY"
PROCESSES = "processes.jsonl"
_HELPERS = ("multiprocessing.", "compile_worker", "resource_tracker", "torch.distributed.run", "torchrun")


def begin() -> None:
    """Called once per Python process under `stallwise record`."""
    folder = os.environ.get(FOLDER)
    if not folder or _is_helper_process():
        return
    try:
        _seen(folder, "begin")
        from stallwise.recorder.after_import import after_import

        after_import("torch", lambda torch: _start(torch, folder))
        after_import("jax", lambda jax: _start_jax(jax, folder))
        if not os.environ.get(TRY):
            from stallwise.recorder.verbs import at_first_use

            at_first_use(lambda: _start_plain(folder))
    except Exception as error:
        say("not recording (%s); the job goes on" % error)


def _is_helper_process() -> bool:
    """Loader workers, resource trackers and compile workers are Python too, but nobody's training loop."""
    words = " ".join(sys.orig_argv) if hasattr(sys, "orig_argv") else " ".join(sys.argv)
    return any(w in words for w in _HELPERS)


def _seen(folder: str, what: str, **more: Any) -> None:
    """One line for a Python process that this recording has reached."""
    argv = list(getattr(sys, "orig_argv", sys.argv))[:20]
    line = {"k": "process", "what": what, "pid": os.getpid(), "t": time.time(), "argv": [a[:200] for a in argv], **more}
    file = os.open(os.path.join(folder, PROCESSES), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(file, (json.dumps(line) + "\n").encode("utf-8", "replace"))
    finally:
        os.close(file)


def _start(torch: Any, folder: str) -> None:
    from stallwise.recorder import verbs

    quietly(_seen, folder, "torch", version=str(torch.__version__))
    if os.environ.get(TRY):
        _try(torch, folder)
        return
    verbs.start(folder)
    recording = verbs.recording()
    if recording is None or os.environ.get(LIGHT):
        return
    from stallwise.recorder.oom import watch_oom
    from stallwise.recorder.profile_window import ProfileWindow, parse_steps
    from stallwise.recorder.time_window import watch

    watch(recording, ProfileWindow(recording, parse_steps(os.environ.get(STEPS))))
    watch_oom(recording)


def _start_plain(folder: str) -> None:
    """The job has used a verb: worth a record, framework or not. One that is imported later joins it."""
    from stallwise.recorder import verbs

    quietly(_seen, folder, "verbs")
    verbs.start(folder)


def _try(torch: Any, folder: str) -> None:
    """Under `stallwise try`: steps and stages without a sampler, and the trials that hear of them."""
    import importlib

    from stallwise.recorder import verbs

    verbs.start(folder, stacks=False)
    recording = verbs.recording()
    if recording is not None:
        # Found by name: the trials import the recorder, not the other way round.
        trials = importlib.import_module("stallwise.experiment.begin")
        trials.begin(torch, recording, folder, trials.options_of(os.environ[TRY]))


def _start_jax(jax: Any, folder: str) -> None:
    from stallwise.recorder import verbs

    quietly(_seen, folder, "jax", version=str(jax.__version__))
    verbs.start(folder)
    recording = verbs.recording()
    if recording is None or os.environ.get(LIGHT):
        return
    from stallwise.recorder.jax_window import JaxWindow

    JaxWindow(recording, jax).start()


def chained(own_folder: Optional[str]) -> None:
    """Runs the sitecustomize that ours hides, if the user has one; `import sitecustomize` then finds that one."""
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != own_folder]
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        import importlib.util

        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)
