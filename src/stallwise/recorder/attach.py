"""Looks at a running process and its children from outside: stacks by py-spy, samples of the GPUs, and what /proc says.

Nothing is injected: py-spy reads the other's memory and never stops it. What was seen is written as records, so that whatever reads
records reads them: one for each process that runs code of the user's, and one for each loader worker.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from stallwise.recorder import schema
from stallwise.recorder.launch import sample_gpus
from stallwise.recorder.line_names import GENERATED
from stallwise.recorder.loader_workers import LOOP
from stallwise.recorder.memory_account import PAGE, children, host_memory, pages

RATE_HZ = 100
WAIT_S = 30.0  # beyond the time asked for: py-spy looks for symbols first
MEMORY_EVERY_S = 0.5
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
PROCESS = re.compile(r"^process (\d+):")
FRAME = re.compile(r"^(.*) \((.+):(\d+)\)$")
LIBRARY = re.compile(r"(?:site-packages|dist-packages|lib/python3\.\d+)/(.*)$")
Stacks = Counter[tuple[str, ...]]  # lines of one thread, innermost first


@dataclass
class Seen:
    """What a look from outside showed."""

    pid: int
    command: str
    seconds: float
    stacks: dict[int, Stacks] = field(
        default_factory=dict
    )  # of the main thread of each process that runs the user's code
    workers: dict[int, Stacks] = field(default_factory=dict)  # of loaders
    why_no_stacks: str = ""
    cores: float = 0.0  # processor time over wall time
    threads: int = 0
    read_bytes_s: float = 0.0
    written_bytes_s: float = 0.0
    waits: str = ""  # where the kernel holds the main thread, if it does
    memory: list[tuple[float, int]] = field(default_factory=list)  # time, bytes of it and its children

    @property
    def main(self) -> Stacks:
        """Of the process that was seen most: of a launcher's its child."""
        return max(self.stacks.values(), key=lambda s: s.total(), default=Counter())


def attach(pid: int, folder: str, seconds: float) -> Seen:
    """Looks for so many seconds and writes what it saw into the folder."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    command = _command(pid)
    before, began = _proc(pid), time.time()
    seen = Seen(pid, command, seconds)
    sampler = sample_gpus(folder)
    try:
        _stacks(seen, Path(folder) / "py_spy.txt")
        while (left_s := seconds - (time.time() - began)) > 0:  # without py-spy
            time.sleep(min(left_s, MEMORY_EVERY_S))
            seen.memory.append(_memory(pid))
    finally:
        if sampler is not None:
            sampler.terminate()
            sampler.wait()
    after = _proc(pid) or before
    ended = not _memory(pid)[1]
    seen.memory = [mark for mark in seen.memory if mark[1]]
    del seen.memory[len(seen.memory) - ended :]  # what it gave back as it ended
    seen.seconds = took_s = max(time.time() - began, 1e-3)
    seen.cores = (after["cpu_s"] - before["cpu_s"]) / took_s
    seen.threads, seen.waits = int(after["threads"]), _waits(pid)
    seen.read_bytes_s = (after["read_bytes"] - before["read_bytes"]) / took_s
    seen.written_bytes_s = (after["written_bytes"] - before["written_bytes"]) / took_s
    _write(Path(folder), seen, began)
    return seen


def exists(pid: int) -> bool:
    """A process of this number runs."""
    return Path(f"/proc/{pid}").is_dir()


def spy() -> str | None:
    """Where py-spy is, on the path or beside this Python."""
    return shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))


def _stacks(seen: Seen, raw: Path) -> None:
    """Stacks of the main threads with how often each was seen, and the memory meanwhile; or why there are none."""
    tool = spy()
    if tool is None:
        seen.why_no_stacks = "py-spy is not installed: pip install 'stallwise[attach]'"
        return
    options = ["--nonblocking", "--idle", "--threads", "--subprocesses", "--full-filenames", "--format", "raw"]
    command = [tool, "record", *options, "--rate", str(RATE_HZ), "--duration", str(max(round(seen.seconds), 1))]
    try:
        with raw.with_suffix(".log").open("w+") as log:
            job = subprocess.Popen([*command, "--output", str(raw), "--pid", str(seen.pid)], stdout=log, stderr=log)
            until = time.time() + seen.seconds + WAIT_S
            while job.poll() is None and time.time() < until:
                seen.memory.append(_memory(seen.pid))
                time.sleep(MEMORY_EVERY_S)
            job.kill()
            job.wait()
            log.seek(0)
            words = [line.strip() for line in log if line.strip()]
        raw.with_suffix(".log").unlink()
    except OSError as error:
        seen.why_no_stacks = f"py-spy: {error}"
        return
    if not raw.exists():
        seen.why_no_stacks = f"py-spy could not look: {words[0] if words else 'it printed nothing'}"
        return
    found = main_threads(raw.read_text(encoding="utf-8", errors="replace"), seen.pid, _here(seen.pid))
    raw.unlink()
    lines = {pid: {line for stack in stacks for line in stack} for pid, stacks in found.items()}
    seen.workers = {pid: s for pid, s in found.items() if any(line.endswith(" " + LOOP) for line in lines[pid])}
    own = {pid: s for pid, s in found.items() if not all(line.startswith((schema.LIBRARY, "<")) for line in lines[pid])}
    seen.stacks = {pid: s for pid, s in own.items() if pid not in seen.workers} or {
        seen.pid: found.get(seen.pid, Counter())
    }


def main_threads(raw: str, pid: int, here: str = "") -> dict[int, Stacks]:
    """Of py-spy's collapsed lines the stacks of each process's main thread; files relative to the folder it runs in."""
    found: dict[int, Stacks] = defaultdict(Counter)
    for row in raw.splitlines():
        stack, _, count = row.rpartition(" ")
        parts = stack.split(";")
        process = pid
        while parts and (at := PROCESS.match(parts[0])):
            process = int(at[1])
            parts.pop(0)
        thread, *frames = parts or [""]
        if frames and count.isdecimal() and (f"({process})" in thread or "MainThread" in thread):
            found[process][tuple(_line(frame, here) for frame in reversed(frames))] += int(count)
    return dict(found)


def _line(frame: str, here: str) -> str:
    """ "log (/home/me/train.py:8)" as the recorder writes it: "train.py:8 log" in /home/me; a library's file begins with "lib/"."""
    parts = FRAME.match(frame)
    if parts is None:
        return frame
    library = LIBRARY.search(parts[2])
    if library or any(place in parts[2] for place in GENERATED):
        file = schema.LIBRARY + (library[1] if library else "torch/_inductor/" + os.path.basename(parts[2]))
    else:
        file = parts[2][len(here) :] if here and parts[2].startswith(here) else os.sep.join(parts[2].split(os.sep)[-2:])
    return f"{file}:{parts[3]} {parts[1]}"


def _here(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd") + os.sep
    except OSError:
        return ""


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _proc(pid: int) -> dict[str, float]:
    """Processor time, threads and bytes read and written so far; zeros where we may not look."""
    found = dict.fromkeys(("cpu_s", "threads", "read_bytes", "written_bytes"), 0.0)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        found["cpu_s"] = (int(fields[11]) + int(fields[12])) / TICKS
        found["threads"] = float(fields[17])
        for line in Path(f"/proc/{pid}/io").read_text().splitlines():
            name, _, value = line.partition(": ")
            if name in ("rchar", "wchar"):
                found["read_bytes" if name == "rchar" else "written_bytes"] = float(value)
    except (OSError, ValueError, IndexError):
        pass
    return found


def _memory(pid: int) -> tuple[float, int]:
    """Resident bytes of a process and what its children have for themselves."""
    try:
        own, others = pages(str(pid))[0], [pages(child) for child in children(pid)]
    except (OSError, ValueError, IndexError):
        return time.time(), 0
    return time.time(), (own + sum(resident - shared for resident, shared in others)) * PAGE


def _waits(pid: int) -> str:
    try:
        where = Path(f"/proc/{pid}/wchan").read_text().strip()
    except OSError:
        return ""
    return where if where not in ("", "0") else ""


def _rank(pid: int) -> int | None:
    """As a launcher numbered the process."""
    try:
        pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    rank = next((pair[5:] for pair in pairs if pair.startswith(b"RANK=")), b"")
    return int(rank) if rank.isdigit() else None


def _script(pid: int) -> str:
    """The first Python file of its command line, as a path."""
    words = _command(pid).split()
    script = next((word for word in words[1:] if word.endswith(".py")), "")
    return os.path.join(_here(pid), script) if script else ""


def _write(folder: Path, seen: Seen, began: float) -> None:
    for number, (pid, stacks) in enumerate((seen.stacks or {seen.pid: Counter()}).items()):
        rank = _rank(pid)
        lines = _record(seen, pid, stacks, rank or 0, began, first=not number)
        _put(folder / schema.file_name(rank or 0, 0 if rank is not None or not number else pid), lines)
    for pid, stacks in seen.workers.items():
        _put(folder / f"loader-{seen.pid}-{pid}.jsonl", _of_worker(pid, stacks, _rank(pid) or 0, began))


def _record(seen: Seen, pid: int, stacks: Stacks, rank: int, began: float, first: bool) -> list[dict[str, object]]:
    run = {"k": "run", "v": schema.VERSION, "rank": rank, "world": 1, "pid": pid, "host": "", "t": began, "env": {}}
    lines: list[dict[str, object]] = [
        {**run, "host_memory": host_memory(), "script": _script(pid)},
        {"k": "mark", "name": "attached", "note": f"from outside, for {seen.seconds:.0f} s", "n": 0, "t": began},
    ]
    if seen.why_no_stacks:
        lines.append({"k": "mark", "name": "no stacks", "note": seen.why_no_stacks, "n": 0, "t": began})
    ordered = stacks.most_common()
    lines += [{"k": "frames", "id": i, "stack": list(stack)} for i, (stack, _) in enumerate(ordered)]
    counts = [count for _, count in ordered]
    lines.append({"k": "counted", "id": list(range(len(ordered))), "count": counts, "seconds": round(seen.seconds, 3)})
    if first:
        marks = [(round(t - began, 3), size) for t, size in seen.memory]
        lines.append({"k": "memory", "s": [t for t, _ in marks], "bytes": [size for _, size in marks]})
    return lines


def _of_worker(pid: int, stacks: Stacks, rank: int, began: float) -> list[dict[str, object]]:
    """As a worker that we started writes it: the frames inside its loop."""
    inside: Stacks = Counter()
    for stack, count in stacks.items():
        ends = next((at for at, line in enumerate(stack) if line.endswith(" " + LOOP)), 0)
        inside[stack[:ends]] += count
    names = {line: number for number, line in enumerate(dict.fromkeys(line for stack in inside for line in stack))}
    counted = [{"id": i, "lines": [names[at] for at in s], "count": n} for i, (s, n) in enumerate(inside.items())]
    return [
        {"k": "loader", "rank": rank, "pid": pid, "t": began},
        *({"k": "line", "id": number, "at": line} for line, number in names.items()),
        {"k": "worker_stacks", "stacks": counted},
    ]


def _put(path: Path, lines: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
