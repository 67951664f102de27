"""Runs the user's command with a recorder inside it; the job's output, signals and exit code pass through untouched."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Dict, List, Optional, Sequence

from stallwise.instrument import autostart

LOG_LIMIT_BYTES = 64 << 20
SMI_QUERY = (
    "timestamp,index,name,utilization.gpu,utilization.memory,memory.used,memory.total,power.draw,power.limit,clocks.sm,"
    "clocks.max.sm,temperature.gpu,clocks_event_reasons.active,pcie.link.gen.current,pcie.link.gen.max"
)


def launch(command: Sequence[str], folder: str, steps: Optional[str] = None, light: bool = False) -> int:
    """Runs the command and returns its exit code (negative for a signal). Artifacts land in `folder`."""
    folder = os.path.abspath(folder)
    env = dict(os.environ)
    try:
        os.makedirs(folder, exist_ok=True)
        env.update(_settings(folder, steps, light))
        _describe(command, folder)
    except OSError as error:
        sys.stderr.write("stallwise: not recording (%s); the job goes on\n" % error)
        return subprocess.call(list(command))
    sampler = _sample_gpus(folder)
    try:
        return _run(command, env, os.path.join(folder, "log.txt"))
    finally:
        if sampler is not None:
            sampler.terminate()


def _settings(folder: str, steps: Optional[str], light: bool) -> Dict[str, str]:
    """Variables for the job. What the user has set stays as it is."""
    site = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")
    path = os.environ.get("PYTHONPATH")
    env = {
        "PYTHONPATH": site + (os.pathsep + path if path else ""),
        autostart.FOLDER: folder,
        "TORCH_FR_BUFFER_SIZE": "2000",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": os.path.join(folder, "nccl_trace_rank_"),
        "NCCL_DEBUG_FILE": os.path.join(folder, "nccl.%h.%p.log"),
        "NCCL_DEBUG": "INFO",
    }
    if steps:
        env[autostart.STEPS] = steps
    if light:
        env[autostart.LIGHT] = "1"
    mine = ("PYTHONPATH", autostart.FOLDER, autostart.STEPS, autostart.LIGHT)
    if "NCCL_DEBUG" in os.environ:  # the user reads these lines on the screen: leave them there
        del env["NCCL_DEBUG_FILE"]
    return {k: v for k, v in env.items() if k in mine or k not in os.environ}


def _describe(command: Sequence[str], folder: str) -> None:
    about = {
        "command": list(command),
        "started": time.time(),
        "python": platform.python_version(),
        "machine": platform.platform(),
        "cpus": os.cpu_count(),
    }
    with open(os.path.join(folder, "bundle.json"), "w", encoding="utf-8") as file:
        json.dump({"stallwise_bundle": 1, **about}, file, indent=1)


def _sample_gpus(folder: str) -> "Optional[subprocess.Popen[bytes]]":
    """nvidia-smi five times a second beside the job, where there is one."""
    if shutil.which("nvidia-smi") is None:
        return None
    try:
        with open(os.path.join(folder, "nvidia_smi.csv"), "wb") as file:
            return subprocess.Popen(
                ["nvidia-smi", "--query-gpu=" + SMI_QUERY, "--format=csv", "-lms", "200"],
                stdout=file,
                stderr=subprocess.DEVNULL,
            )
    except OSError:
        return None


def _run(command: Sequence[str], env: Dict[str, str], log: str) -> int:
    terminal = sys.stdout.isatty() and sys.stderr.isatty()
    try:
        child = _in_terminal(command, env, log) if terminal else _in_pipes(command, env, log)
    except FileNotFoundError:
        sys.stderr.write("stallwise: no such command: %s\n" % command[0])
        return 127
    return child


def _in_pipes(command: Sequence[str], env: Dict[str, str], log: str) -> int:
    child = subprocess.Popen(list(command), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    keep = _Log(log)
    pumps = [
        threading.Thread(target=_pump, args=(source.fileno(), sink, keep), daemon=True)
        for source, sink in ((child.stdout, 1), (child.stderr, 2))
        if source is not None
    ]
    for pump in pumps:
        pump.start()
    code = _wait(child)
    for pump in pumps:
        pump.join(timeout=5.0)  # a grandchild may hold the pipe open; do not wait for it for ever
    keep.close()
    return code


def _in_terminal(command: Sequence[str], env: Dict[str, str], log: str) -> int:
    """Through a pseudo-terminal, so that progress bars and colours stay as they are."""
    import pty

    ours, theirs = pty.openpty()
    try:
        import fcntl
        import termios

        fcntl.ioctl(theirs, termios.TIOCSWINSZ, fcntl.ioctl(1, termios.TIOCGWINSZ, b"\0" * 8))
    except OSError:
        pass
    child = subprocess.Popen(list(command), env=env, stdout=theirs, stderr=theirs)
    os.close(theirs)
    keep = _Log(log)
    pump = threading.Thread(target=_pump, args=(ours, 1, keep), daemon=True)
    pump.start()
    code = _wait(child)
    pump.join(timeout=5.0)
    keep.close()
    return code


def _wait(child: "subprocess.Popen[bytes]") -> int:
    """Waits for the child. Ctrl-C reaches it from the terminal by itself; SIGTERM and SIGHUP are passed on."""
    old: List[Any] = []
    on_main = threading.current_thread() is threading.main_thread()
    if on_main:
        for number in (signal.SIGTERM, signal.SIGHUP):
            old.append((number, signal.signal(number, lambda n, frame: child.send_signal(n))))
        old.append((signal.SIGINT, signal.signal(signal.SIGINT, signal.SIG_IGN)))
    try:
        return child.wait()
    finally:
        for number, handler in old:
            signal.signal(number, handler)


class _Log:
    """A bounded copy of the output; trouble with it never reaches the job."""

    def __init__(self, path: str) -> None:
        self._left = LOG_LIMIT_BYTES
        self._lock = threading.Lock()
        try:
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115
        except OSError:
            self._left = 0

    def write(self, data: bytes) -> None:
        with self._lock:
            if self._left <= 0:
                return
            try:
                self._file.write(data[: self._left])
                self._left -= len(data)
            except OSError:
                self._left = 0

    def close(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()


def _pump(source: int, sink: int, keep: _Log) -> None:
    while True:
        try:
            data = os.read(source, 65536)
        except OSError:  # a pseudo-terminal ends with an error, not with nothing
            return
        if not data:
            return
        keep.write(data)
        try:
            while data:
                data = data[os.write(sink, data) :]
        except OSError:
            pass  # our own output is closed; keep reading so that the job does not block
