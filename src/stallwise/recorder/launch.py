"""Runs the user's command with a recorder inside it; the job's output, signals and exit code pass through untouched."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from typing import Any, Dict, Optional, Sequence

from stallwise.recorder import autostart, schema
from stallwise.recorder.bounded_log import BoundedLog
from stallwise.recorder.exit_status import exit_status, oom_kills
from stallwise.recorder.relay import Relay
from stallwise.recorder.stacks_in_trace import put_stacks_in

BUNDLE = "bundle.json"
SMI_QUERY = (
    "timestamp,index,name,utilization.gpu,utilization.memory,memory.used,memory.total,power.draw,power.limit,clocks.sm,"
    "clocks.max.sm,temperature.gpu,clocks_event_reasons.active,pcie.link.gen.current,pcie.link.gen.max"
)


def launch(
    command: Sequence[str],
    folder: str,
    steps: Optional[str] = None,
    light: bool = False,
    more: Optional[Dict[str, str]] = None,
) -> int:
    """Runs the command and returns its exit code (negative for a signal). Artifacts land in `folder`.

    `more` are further variables for the job: what it is to try.
    """
    folder = os.path.abspath(folder)
    env = dict(os.environ)
    about: Dict[str, Any] = {}
    sampler = None
    kills = oom_kills()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        about = _about(command)
        _describe(folder, about)
        env.update(_settings(folder, steps, light))
        if runs_without_site(command):  # nobody would take our folder out of its path again
            env.pop("PYTHONPATH", None)
            env.update({k: v for k, v in os.environ.items() if k == "PYTHONPATH"})
        env.update(more or {})
        sampler = sample_gpus(folder)
    except OSError as error:
        sys.stderr.write("stallwise: not recording (%s); the job goes on\n" % error)
        about = {}
    log = BoundedLog(os.path.join(folder, "log.txt"))
    try:
        code = Relay(log).run(command, env)
    finally:
        if sampler is not None:
            sampler.terminate()
            sampler.wait()
    if about:
        log.close()
        put_stacks_in(folder)
        try:
            end = {"ended": time.time(), **exit_status(code, log.words, kills), **_logged_steps(folder, log)}
            _describe(folder, {**about, **end})
        except OSError as error:
            sys.stderr.write("stallwise: the record of the job's end is lost (%s)\n" % error)
    return code


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


def runs_without_site(command: Sequence[str]) -> bool:
    """`python -S ...`: such a Python runs no sitecustomize, so the recorder cannot begin in it."""
    words = iter(command)
    name = os.path.basename(next(words, ""))
    if not name.startswith(("python", "pypy")):
        return False
    for word in words:
        if not word.startswith("-") or word.startswith("--") or word == "-":
            return False
        letters = word[1:]
        for at, letter in enumerate(letters):
            if letter == "S":
                return True
            if letter in "cm":  # the program begins here
                return False
            if letter in "WX":  # takes the rest of the word, or the next one
                if at == len(letters) - 1:
                    next(words, "")
                break
    return False


def _logged_steps(folder: str, log: BoundedLog) -> Dict[str, Any]:
    """The steps that the output counts, where no process of the job showed any."""
    for record in schema.files_in(folder):
        with open(record, "rb") as lines:
            if any(line.startswith(b'{"k":"step"') for line in lines):
                return {}
    steps = log.clock.steps()
    return {"logged_steps": steps} if steps is not None else {}


def _about(command: Sequence[str]) -> Dict[str, Any]:
    return {
        "command": list(command),
        "started": time.time(),
        "python": platform.python_version(),
        "machine": platform.platform(),
        "cpus": _usable_cpus(),
    }


def _usable_cpus() -> Optional[int]:
    """Cores that the job may use: a container or a scheduler often gives it fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity is not None else os.cpu_count()


def _describe(folder: str, about: Dict[str, Any]) -> None:
    """Written at the start, and again with the end: a reader never finds half of it."""
    path = os.path.join(folder, BUNDLE)
    with open(path + ".part", "w", encoding="utf-8", errors="surrogateescape") as file:
        json.dump({"stallwise_bundle": 2, **about}, file, indent=1)
    os.replace(path + ".part", path)


def sample_gpus(folder: str) -> "Optional[subprocess.Popen[bytes]]":
    """nvidia-smi five times a second beside the job, where there is one."""
    if shutil.which("nvidia-smi") is None:
        return None
    try:
        with open(os.path.join(folder, "nvidia_smi.csv"), "wb") as file:
            return subprocess.Popen(
                ["nvidia-smi", "--query-gpu=" + SMI_QUERY, "--format=csv", "-lms", "200"],
                stdout=file,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
    except OSError:
        return None
