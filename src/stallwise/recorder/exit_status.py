"""How a job ended, in words: its code, the signal that killed it, whether the kernel's out-of-memory killer did it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from typing import Any, Dict, List, Optional

WORDS_LINES = 30
_CGROUP = "/sys/fs/cgroup"
_KILLED = re.compile(r"(Out of memory|oom-kill|Killed process).*")


def oom_kills() -> Optional[int]:
    """How many processes of our control group the kernel has killed for memory so far; None where it does not say."""
    try:
        with open("/proc/self/cgroup", encoding="ascii") as file:
            own = next((line.split("::", 1)[1].strip() for line in file if "::" in line), "/")
        for folder in (_CGROUP + own, _CGROUP):
            path = os.path.join(folder, "memory.events")
            if os.path.exists(path):
                with open(path, encoding="ascii") as events:
                    return int(next(line.split()[1] for line in events if line.startswith("oom_kill ")))
    except (OSError, ValueError, StopIteration, IndexError):
        pass
    return None


def exit_status(code: int, words: str, oom_kills_before: Optional[int]) -> Dict[str, Any]:
    """What `bundle.json` says of the end."""
    lines = [line for line in words.replace("\r", "\n").splitlines() if line.strip()]
    found: Dict[str, Any] = {"exit_code": code if code >= 0 else 128 - code, "last_words": lines[-WORDS_LINES:]}
    if code < 0:
        found["signal"] = -code
        try:
            found["signal_name"] = signal.Signals(-code).name
        except ValueError:
            found["signal_name"] = "signal %d" % -code
    if code in (-signal.SIGKILL, 137):
        after = oom_kills()
        if after is not None and oom_kills_before is not None:
            found["oom_kills"] = after - oom_kills_before
        kernel_line = _kernel_says()
        if kernel_line:
            found["kernel"] = kernel_line
    return found


def _kernel_says() -> List[str]:
    """The kernel's last words about killing for memory, where we may read them."""
    if shutil.which("dmesg") is None:
        return []
    try:
        done = subprocess.run(["dmesg"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return []
    lines = done.stdout.decode("utf-8", "replace").splitlines()[-400:]
    return [line[:300] for line in lines if _KILLED.search(line)][-3:]
