"""A process that has imported PyTorch once and forks a child for every job: plain, with the API, or with all that `run` puts in.

python forked.py     reads one JSON object a line from standard input, {"job": "suite:name", "way": ..., "work": folder}
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

TIMEOUT_S = 40.0
# What PyTorch imports at first use, seconds of it: once here instead of in every child.
LAZY = (
    "torch.profiler", "torch._dynamo", "torch._dynamo.testing", "torch.export", "torch.distributed.fsdp", "torch.func",
    "torch.ao.quantization", "torch.optim.swa_utils", "torch.utils.checkpoint", "torch.nn.utils.prune",
    "torch.nn.utils.parametrizations", "stallwise.instrument.autostart", "stallwise.instrument.profile_window",
    "stallwise.instrument.sampler", "stallwise.instrument.watchdog",
)  # fmt: skip


def main() -> None:
    import torch

    suites = {name: importlib.import_module(name) for name in ("training_jobs", "object_jobs", "profiler_jobs")}
    for module in LAZY:
        importlib.import_module(module)
    gc.freeze()  # the collector of a child has no business with the pages of this one
    ask, answer = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    for line in ask:
        wanted = json.loads(line)
        pid = os.fork()
        if pid == 0:
            ask.close()
            answer.close()
            _move_in(wanted["work"])
            torch.manual_seed(0)
            random.seed(0)
            _record(wanted["way"], os.path.join(wanted["work"], "bundle"), torch)
            suite, name = wanted["job"].split(":")
            _now(getattr(suites[suite], name))
        answer.write(json.dumps(_wait(pid)) + "\n")
        answer.flush()


def _now(job: Callable[[], None]) -> NoReturn:
    """The child's own life and end, as the interpreter does it: only the seconds of clearing PyTorch's modules are left out."""
    sys.argv = ["job.py"]
    code = 0
    try:
        job()
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        if leaving.code is not None and not isinstance(leaving.code, int):
            print(leaving.code, file=sys.stderr)
    except BaseException:
        code = 1
        sys.excepthook(*sys.exc_info())
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _move_in(work: str) -> None:
    os.setsid()
    os.chdir(os.path.join(work, "inside"))
    for number, name, flags in (
        (0, "in", os.O_RDONLY | os.O_CREAT),
        (1, "out", os.O_WRONLY | os.O_CREAT),
        (2, "err", os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        file = os.open(os.path.join(work, name), flags, 0o644)
        os.dup2(file, number)
        os.close(file)


def _record(way: str, bundle: str, torch: object) -> None:
    if way == "api":
        import stallwise

        stallwise.start(bundle)
    elif way == "inside":
        from stallwise.instrument import autostart

        os.makedirs(bundle)
        autostart._start(torch, bundle)


def _wait(pid: int) -> int | None:
    """The child's code; None where it had to be ended."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


if __name__ == "__main__":
    main()
