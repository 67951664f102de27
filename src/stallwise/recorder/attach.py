"""Looks at a running process from outside: stacks by py-spy, samples of the GPUs, and what /proc says. Nothing is injected.

py-spy reads the other's memory and never stops it. The stacks are written as a record of their own, so that whatever reads
records reads them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from stallwise.recorder import schema
from stallwise.recorder.launch import sample_gpus

RATE_HZ = 100
WAIT_S = 30.0  # beyond the time asked for: py-spy looks for symbols first
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
FRAME = re.compile(r"^(.*) \((.+):(\d+)\)$")
LIBRARY = re.compile(r"(?:site-packages|dist-packages|lib/python3\.\d+)/(.*)$")


@dataclass
class Seen:
    """What a look from outside showed."""

    pid: int
    command: str
    seconds: float
    stacks: Counter[tuple[str, ...]] = field(default_factory=Counter)  # lines of the main thread, innermost first
    why_no_stacks: str = ""
    cores: float = 0.0  # processor time over wall time
    memory_bytes: int = 0
    threads: int = 0
    read_bytes_s: float = 0.0
    written_bytes_s: float = 0.0
    waits: str = ""  # where the kernel holds the main thread, if it does


def attach(pid: int, folder: str, seconds: float) -> Seen:
    """Looks for so many seconds and writes what it saw into the folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    command = _command(pid)
    before, began = _proc(pid), time.time()
    sampler = sample_gpus(folder)
    try:
        stacks, why = _stacks(pid, seconds, Path(folder))
        left_s = seconds - (time.time() - began)
        if left_s > 0:
            time.sleep(left_s)
    finally:
        if sampler is not None:
            sampler.terminate()
            sampler.wait()
    after = _proc(pid) or before
    took_s = max(time.time() - began, 1e-3)
    seen = Seen(
        pid, command, took_s, stacks, why,
        cores=(after["cpu_s"] - before["cpu_s"]) / took_s,
        memory_bytes=int(after["memory_bytes"]), threads=int(after["threads"]),
        read_bytes_s=(after["read_bytes"] - before["read_bytes"]) / took_s,
        written_bytes_s=(after["written_bytes"] - before["written_bytes"]) / took_s,
        waits=_waits(pid),
    )  # fmt: skip
    _write(folder, seen, began)
    return seen


def exists(pid: int) -> bool:
    """A process of this number runs."""
    return Path(f"/proc/{pid}").is_dir()


def spy() -> str | None:
    """Where py-spy is, on the path or beside this Python."""
    return shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))


def _stacks(pid: int, seconds: float, folder: Path) -> tuple[Counter[tuple[str, ...]], str]:
    """Stacks of the main thread with how often each was seen; or why there are none."""
    tool = spy()
    if tool is None:
        return Counter(), "py-spy is not installed: pip install 'stallwise[attach]'"
    raw = folder / "py_spy.txt"
    duration = str(max(round(seconds), 1))
    options = ["--nonblocking", "--idle", "--threads", "--full-filenames", "--format", "raw", "--rate", str(RATE_HZ)]
    command = [tool, "record", *options, "--duration", duration, "--output", str(raw), "--pid", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + WAIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Counter(), f"py-spy: {error}"
    if not raw.exists():
        error_lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        return Counter(), f"py-spy could not look: {error_lines[0].strip() if error_lines else 'it said nothing'}"
    found = main_thread(raw.read_text(encoding="utf-8", errors="replace"), pid)
    raw.unlink()
    return found, ""


def main_thread(raw: str, pid: int) -> Counter[tuple[str, ...]]:
    """The main thread's stacks of py-spy's collapsed lines, innermost line first."""
    found: Counter[tuple[str, ...]] = Counter()
    for row in raw.splitlines():
        stack, _, count = row.rpartition(" ")
        thread, *frames = stack.split(";")
        if frames and count.isdecimal() and (f"({pid})" in thread or "MainThread" in thread):
            found[tuple(_line(frame) for frame in reversed(frames))] += int(count)
    return found


def _line(frame: str) -> str:
    """ "log (/home/me/train.py:8)" as the recorder writes it: "me/train.py:8 log"; a library's file begins with "lib/"."""
    parts = FRAME.match(frame)
    if parts is None:
        return frame
    library = LIBRARY.search(parts[2])
    file = schema.LIBRARY + library[1] if library else os.sep.join(parts[2].split(os.sep)[-2:])
    return f"{file}:{parts[3]} {parts[1]}"


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _proc(pid: int) -> dict[str, float]:
    """Processor time, memory, threads and bytes read and written so far; zeros where we may not look."""
    found = dict.fromkeys(("cpu_s", "memory_bytes", "threads", "read_bytes", "written_bytes"), 0.0)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        found["cpu_s"] = (int(fields[11]) + int(fields[12])) / TICKS
        found["threads"] = float(fields[17])
        found["memory_bytes"] = float(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        for line in Path(f"/proc/{pid}/io").read_text().splitlines():
            name, _, value = line.partition(": ")
            if name in ("rchar", "wchar"):
                found["read_bytes" if name == "rchar" else "written_bytes"] = float(value)
    except (OSError, ValueError, IndexError):
        pass
    return found


def _waits(pid: int) -> str:
    try:
        where = Path(f"/proc/{pid}/wchan").read_text().strip()
    except OSError:
        return ""
    return where if where not in ("", "0") else ""


def _write(folder: str, seen: Seen, began: float) -> None:
    lines: list[dict[str, object]] = [
        {"k": "run", "v": schema.VERSION, "rank": 0, "world": 1, "pid": seen.pid, "host": "", "t": began, "env": {}},
        {"k": "mark", "name": "attached", "note": f"from outside, for {seen.seconds:.0f} s", "n": 0, "t": began},
    ]
    if seen.why_no_stacks:
        lines.append({"k": "mark", "name": "no stacks", "note": seen.why_no_stacks, "n": 0, "t": began})
    ordered = seen.stacks.most_common()
    lines += [{"k": "frames", "id": i, "stack": list(stack)} for i, (stack, _) in enumerate(ordered)]
    lines.append({"k": "counted", "id": list(range(len(ordered))), "count": [count for _, count in ordered]})
    lines.append(
        {
            "k": "outside", "cores": round(seen.cores, 3), "memory_bytes": seen.memory_bytes, "threads": seen.threads,
            "read_bytes_s": round(seen.read_bytes_s), "written_bytes_s": round(seen.written_bytes_s), "waits": seen.waits,
        }
    )  # fmt: skip
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    Path(folder, schema.file_name(0)).write_text(text, encoding="utf-8")
