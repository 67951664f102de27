"""A process that has imported PyTorch once and forks a child for every job: plain, with the API, under `record` or under `run`.

`record` and `run` are the commands themselves, from their arguments to the exit code, in a fork of their own. Only where they
would start the job with a new interpreter, that one is a fork as well, made into what a fresh process is.

python forked.py     reads one JSON object a line from standard input, {"job": "suite:name", "way": ..., "work": folder}
python forked.py .   the same for any script of one's own, {"start": command, "cwd": folder, "env": ..., "out": file, "err": file} and,
                     with the number that answers it, {"wait": pid}
python forked.py -   the same for jobs about processes, which are started for real, {"command": ..., "env": ..., "work": folder}:
                     only the commands that record them are forks of this one, and it waits for whatever still holds their output
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import random
import runpy
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from stallwise.surfaces.cli import run as console_script  # before the command of that name is imported over it

TIMEOUT_S = 60.0
# What PyTorch imports at first use, seconds of it: once here instead of in every child.
LAZY = (
    "torch.profiler", "torch._dynamo", "torch._dynamo.testing", "torch.export", "torch.distributed.fsdp", "torch.func",
    "torch.ao.quantization", "torch.optim.swa_utils", "torch.utils.checkpoint", "torch.nn.utils.prune",
    "torch.nn.utils.parametrizations", "stallwise.recorder.autostart", "stallwise.recorder.profile_window",
    "stallwise.recorder.sampler", "stallwise.recorder.watchdog", "stallwise.recorder.time_window",
    "stallwise.surfaces.cli.run", "stallwise.doctor.examine", "stallwise.render.text", "stallwise.recorder.launch",
)  # fmt: skip


def main() -> None:
    import torch

    suites = {name: importlib.import_module(name) for name in ("training_jobs", "object_jobs", "profiler_jobs")}
    for module in LAZY:
        importlib.import_module(module)
    _warm_up()
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
            suite, name = wanted["job"].split(":")
            job, bundle = getattr(suites[suite], name), os.path.join(wanted["work"], "bundle")
            if wanted["way"] in ("record", "run"):
                _command(wanted["way"], bundle, job)
            if wanted["way"] == "api":
                import stallwise

                stallwise.start(bundle)
            _now(job)
        answer.write(json.dumps(_wait(pid)) + "\n")
        answer.flush()


def scripts() -> None:
    """Programs that a test has written, and the commands that run them: forks of a process that has imported PyTorch."""
    for module in (
        "torch",
        "torch.utils.data",
        "torch.profiler",
        *LAZY[LAZY.index("stallwise.recorder.autostart") :],
    ):
        importlib.import_module(module)
    sys.modules["torch"].set_num_threads(1)
    _warm_up()
    gc.freeze()
    ask, answer = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    for line in ask:
        wanted = json.loads(line)
        if "wait" in wanted:
            reply = _wait(wanted["wait"])
        elif (reply := os.fork()) == 0:
            ask.close()
            answer.close()
            os.setsid()
            os.chdir(wanted["cwd"])
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(wanted[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), number)
            os.closerange(3, 64)
            os.environ.clear()
            os.environ.update(wanted["env"])
            if wanted["start"][0] != "stallwise":
                _now(functools.partial(_script, wanted["start"][1:]))
            from stallwise.recorder import relay

            relay.subprocess = _Processes(Scripted)  # type: ignore[assignment]
            sys.argv = wanted["start"]
            console_script()
            os._exit(99)
        answer.write(json.dumps(reply) + "\n")
        answer.flush()


def _script(command: list[str]) -> None:
    """As `python script.py ...` does it."""
    sys.argv = command
    sys.path.insert(0, os.path.dirname(os.path.abspath(command[0])))
    runpy.run_path(command[0], run_name="__main__")


def processes() -> None:
    """Programs for real; `stallwise` before its own imports and its first diagnosis is all that is saved."""
    for module in (
        "stallwise.surfaces.cli.run",
        "stallwise.recorder.launch",
        "stallwise.doctor.examine",
        "stallwise.render.text",
    ):
        importlib.import_module(module)
    _warm_up()
    gc.freeze()
    ask, answer = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    for line in ask:
        wanted = json.loads(line)
        pipes = {name: os.pipe() for name in ("out", "err")}
        pid = os.fork()
        if pid == 0:
            ask.close()
            answer.close()
            os.setsid()
            os.chdir(os.path.join(wanted["work"], "inside"))
            os.dup2(os.open(os.path.join(wanted["work"], "in"), os.O_RDONLY), 0)
            os.dup2(pipes["out"][1], 1)
            os.dup2(pipes["err"][1], 2)
            os.closerange(3, 64)
            os.environ.clear()
            os.environ.update(wanted["env"])
            command = wanted["command"]
            if command[0] != "stallwise":
                os.execv(command[0], command)
            sys.argv = command
            sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
            sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
            console_script()
            os._exit(99)
        readers = [
            threading.Thread(target=_keep, args=(ends[0], os.path.join(wanted["work"], name)))
            for name, ends in pipes.items()
        ]
        for _, end in pipes.values():
            os.close(end)
        for reader in readers:
            reader.start()
        code = _wait(pid)
        for reader in readers:
            reader.join(TIMEOUT_S)
        answer.write(json.dumps(code) + "\n")
        answer.flush()


def _keep(pipe: int, path: str) -> None:
    """All that comes, until nobody can write any more."""
    with os.fdopen(pipe, "rb") as source, open(path, "wb") as kept:
        kept.write(source.read())


def _warm_up() -> None:
    """One diagnosis here, so that no child of ours reads rules and lexicons again."""
    from stallwise.doctor.examine import diagnose
    from stallwise.render.text import to_text

    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "log.txt"), "w", encoding="utf-8") as log:
            log.write("".join(f"step {n} loss 1.5 time 0.1{n % 3}\n" for n in range(40)))
        to_text(diagnose(folder))


def _now(job: Callable[[], None]) -> NoReturn:
    """The child's own life and end, as the interpreter does it: only the seconds of clearing PyTorch's modules are left out."""
    sys.argv = ["job.py"]
    code = 0
    # PyTorch makes its thread pool anew at its first use after a fork, without a lock: threads that come first find none.
    # A process of the job's own has set its threads before it starts any, when its suite was imported.
    torch = sys.modules["torch"]
    torch.set_num_threads(torch.get_num_threads())
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


def _command(way: str, bundle: str, job: Callable[[], None]) -> NoReturn:
    """`stallwise record` or `run`, as its script starts it."""
    from stallwise.recorder import relay

    class Started(Forked):
        of = staticmethod(job)

    relay.subprocess = _Processes(Started)  # type: ignore[assignment]
    sys.argv = ["stallwise", way, "-o", bundle, "--", "python", "job.py"]
    console_script()
    os._exit(99)  # they leave with the job's code and never come here


class _Processes:
    """What the relay knows of `subprocess`, with a fork where a program would be started."""

    def __init__(self, started: type[Forked]) -> None:
        self.Popen = started


class Forked:
    """A child that is to this process what `Popen([python, job.py])` would give it."""

    of: Callable[[], None]

    def __init__(
        self, command: list[str], env: dict[str, str], stdout: int, stderr: int, close_fds: bool = True
    ) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            _as_if_executed(env, stdout, stderr)
            _now(self.of)

    def poll(self) -> int | None:
        if self.returncode is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class Scripted(Forked):
    """The script that the command names."""

    def __init__(
        self, command: list[str], env: dict[str, str], stdout: int, stderr: int, close_fds: bool = True
    ) -> None:
        self.of = lambda: _script(command[1:])
        super().__init__(command, env, stdout, stderr)


def _as_if_executed(env: dict[str, str], stdout: int, stderr: int) -> None:
    """Handlers, descriptors and variables as after `exec`, then what our sitecustomize does before the first line."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) not in (signal.SIG_IGN, signal.SIG_DFL, None):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    for number, to in ((stdout, 1), (stderr, 2)):
        if number >= 0:
            os.dup2(number, to)
    os.closerange(3, 256)
    os.environ.clear()
    os.environ.update(env)
    from stallwise.recorder import autostart

    autostart.begin()


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
    {"-": processes, ".": scripts}.get("".join(sys.argv[1:]), main)()
