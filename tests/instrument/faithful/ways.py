"""Runs a job plain, with the API, under `record` and under `run`, and says how the four differ.

python tests/instrument/faithful/ways.py [JOB...]      prints one line a job
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src"
WAYS = ("plain", "api", "record", "run")
SUITES = ("training_jobs", "object_jobs", "profiler_jobs", "process_jobs")
HELPERS = {"small", "batch", "fit", "sgd", "over", "trained", "steps"}
# Frames of ours in a traceback are announced; lines that the recorder says are, too.
OURS = re.compile(r'^  File ".*(/stallwise/instrument/|/frozen runpy).*\n(    .*\n)+', re.MULTILINE)
SAID = re.compile(r"(stallwise: .*|^  try: .*|^USDT:.*profiler_(start|stop))\n", re.MULTILINE)
ADDRESS = re.compile(r"0x[0-9a-f]{6,}|pid\(?s?\)? ?\d+|\(pid\(s\) [\d, ]+\)|pid \d+")
WARNING = re.compile(r"^.*Warning: .*\n(Consider .*\n)?(  .*\n)?", re.MULTILINE)
TIMEOUT_S = 120.0


def jobs() -> list[str]:
    """suite:function of every job."""
    found = []
    for suite in SUITES:
        tree = ast.parse((HERE / f"{suite}.py").read_text())
        names = [f.name for f in tree.body if isinstance(f, ast.FunctionDef)]
        found += [f"{suite}:{n}" for n in names if n not in HELPERS and not n.startswith("_")]
    return found


@dataclass(frozen=True)
class Outcome:
    """What a bystander sees of a job."""

    code: int
    out: bytes
    err: str
    files: tuple[str, ...]

    def differs(self, other: Outcome, way: str) -> list[str]:
        """What is not the same. Under `run` the verdict follows the job's own output, after an empty line."""
        cut = len(self.out) if way == "run" and other.out[len(self.out) :][:1] == b"\n" else len(other.out)
        pairs = {
            "exit": (self.code, other.code),
            "stdout": (self.out, other.out[:cut]),
            "stderr": (self.err, other.err),
            "files": (self.files, other.files),
        }
        return [f"{name}: {str(a)[-500:]} -> {str(b)[-500:]}" for name, (a, b) in pairs.items() if a != b]


def outcome(job: str, way: str, python: str = sys.executable) -> Outcome:
    """Runs the job in a folder of its own."""
    suite, name = job.split(":")
    with tempfile.TemporaryDirectory() as work:
        bundle = Path(work) / "bundle"
        inside = Path(work) / "inside"
        site = Path(work) / "site"
        inside.mkdir()
        site.mkdir()
        (site / "sitecustomize.py").write_text("MARK = 'the user has one too'\n")
        command = [python, str(HERE / f"{suite}.py"), name]
        env = {k: v for k, v in os.environ.items() if not k.startswith(("STALLWISE", "RECORD_INTO", "PYTEST"))}
        env.update(PYTHONPATH=f"{site}{os.pathsep}{SOURCE}", PYTHONHASHSEED="0", OMP_NUM_THREADS="1", NO_COLOR="1")
        if way == "api":
            env["RECORD_INTO"] = str(bundle)
        elif way in ("record", "run"):
            command = [python, "-m", "stallwise", way, "-o", str(bundle), "--", *command]
        done = subprocess.run(command, cwd=inside, env=env, input=b"some words", capture_output=True, timeout=TIMEOUT_S)
        files = tuple(sorted(str(p.relative_to(inside)) for p in inside.rglob("*")))
        out = done.stdout
        err = SAID.sub("", done.stderr.decode("utf-8", "replace"))
        err = ADDRESS.sub("#", WARNING.sub("", OURS.sub("", err))).replace(work, "WORK")
        return Outcome(done.returncode, out.replace(work.encode(), b"WORK"), err, files)


def compare(job: str) -> dict[str, list[str]]:
    """Differences of each way against plain."""
    plain = outcome(job, "plain")
    return {way: plain.differs(outcome(job, way), way) for way in WAYS[1:]}


def main() -> None:
    from concurrent.futures import ThreadPoolExecutor

    chosen = [j for j in jobs() if not sys.argv[1:] or any(w in j for w in sys.argv[1:])]
    bad = 0
    with ThreadPoolExecutor(2) as pool:
        for job, found in zip(chosen, pool.map(compare, chosen), strict=True):
            wrong = {way: problems for way, problems in found.items() if problems}
            bad += bool(wrong)
            print("DIFFERS" if wrong else "same   ", job, flush=True)
            for way, problems in wrong.items():
                for problem in problems:
                    print("        ", way, problem[:1500], flush=True)
    print(f"{bad} of {len(chosen)} jobs differ")


if __name__ == "__main__":
    main()
