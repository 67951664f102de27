"""Runs the jobs of jobs.txt plain and recorded, and says what differs: exit code, output, or a line of the error output that is lost.

    python -m tests.recorder.strangers.compare --verb run --at-once 8 --out strangers

Half of them (every second) were looked at while the recorder was mended, the other half was kept; the report counts them apart.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

JOBS = Path(__file__).with_name("jobs.txt")
LIMIT_S = 240.0
GIVEN = b"one\ntwo\n"
_HEAD = re.compile(r"^=== (\w+) (python|shell)\n", re.MULTILINE)
_OWN = re.compile(rb"0x[0-9a-f]+|pid \d+|in \d+\.\d+s|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]?\d*|/tmp/\S+|port \d+")


@dataclass(frozen=True)
class Job:
    """One job, as it was written."""

    name: str
    kind: str
    text: str
    kept: bool


@dataclass(frozen=True)
class Ended:
    """What a shell or a caller can see of it."""

    code: int
    out: bytes
    err: bytes


def jobs(text: str) -> Iterator[Job]:
    """All of the file, in its order; the first is the model that others begin with."""
    parts = _HEAD.split(text)[1:]
    model = parts[2]
    for number, at in enumerate(range(3, len(parts), 3)):
        name, kind, script = parts[at : at + 3]
        yield Job(name, kind, script.replace("+model\n", model.rstrip("\n") + "\n", 1), number % 2 == 1)


def ended(job: Job, recorder: list[str]) -> Ended:
    """Runs it once in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="stranger-"))
    env = {**os.environ, "D": str(folder), "PY": sys.executable, "HOME": str(folder), "RUN": " ".join(recorder)}
    script = folder / "job.py"
    script.write_text(job.text)
    command = [*recorder, sys.executable, str(script), "a", "b"]
    if job.kind == "shell":
        command = ["sh", "-c", job.text.replace("$RUN", env["RUN"])]
    try:
        ran = subprocess.run(command, env=env, cwd=folder, input=GIVEN, capture_output=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return Ended(-999, b"", b"ran for ever")
    return Ended(ran.returncode, _OWN.sub(b"#", ran.stdout), _OWN.sub(b"#", ran.stderr))


def differs(plain: Ended, recorded: Ended, verb: str) -> list[str]:
    """Kinds of difference. What the recorder says of itself stands on the error output; `run` adds its verdict to the output."""
    if verb == "run" and recorded.out.startswith(plain.out):
        recorded = Ended(recorded.code, plain.out, recorded.err)
    found = [f"exit {plain.code} -> {recorded.code}"] if plain.code != recorded.code else []
    found += ["output"] if plain.out != recorded.out else []
    heard = recorded.err.splitlines()
    lost = [line for line in plain.err.splitlines() if line not in heard]
    return found + ([f"{len(lost)} lines of the error output"] if lost else [])


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--verb", choices=("run", "record"), default="record")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=Path("strangers"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)

    def both(job: Job) -> tuple[Job, Ended, Ended, list[str]]:
        bundle = tempfile.mkdtemp(prefix="bundle-")
        recorder = [sys.executable, "-m", "stallwise", chosen.verb, "-o", f"{bundle}/b", "--"]
        plain, recorded = ended(job, []), ended(job, recorder)
        found = differs(plain, recorded, chosen.verb)
        print("differs" if found else "same", job.name, *found, flush=True)
        return job, plain, recorded, found

    every = [j for j in jobs(JOBS.read_text()) if not chosen.only or j.name in chosen.only]
    with ThreadPoolExecutor(chosen.at_once) as pool:
        found = list(pool.map(both, every))
    told = {
        j.name: {"kept": j.kept, "differs": d, "plain": _shown(p), "recorded": _shown(r)} for j, p, r, d in found if d
    }
    (chosen.out / "strangers.json").write_text(json.dumps(told, indent=1) + "\n")
    for kept in (False, True):
        print(
            f"{'kept' if kept else 'open'} half: {sum(bool(d) for j, _, _, d in found if j.kept == kept)} differ",
            end="; ",
        )
    print(f"{len(found)} jobs")


def _shown(end: Ended) -> list[object]:
    return [end.code, end.out.decode(errors="replace")[-2500:], end.err.decode(errors="replace")[-2500:]]


if __name__ == "__main__":
    main()
