"""Runs a job plain, with the API, under `record` and under `run`, and says how the four differ.

python tests/recorder/faithful/ways.py [JOB...]      prints one line a job: every way, each in a process of its own
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src"
WAYS = ("plain", "api", "record", "run")
SUITES = ("training_jobs", "object_jobs", "profiler_jobs", "process_jobs")
HELPERS = {"small", "batch", "fit", "sgd", "over", "trained", "steps"}
# Frames of ours in a traceback are announced; lines that the recorder says are, too.
OURS = re.compile(r'^  File ".*(/(?:src|site-packages)/stallwise/|/frozen runpy).*\n(    .*\n)+', re.MULTILINE)
SAID = re.compile(
    r"(stallwise: .*|^  try: .*|^USDT:.*profiler_(start|stop)|^ERROR: External init callback.*)\n", re.MULTILINE
)
ADDRESS = re.compile(
    r"0x[0-9a-f]{6,}|pid\(?s?\)? ?\d+|\(pid\(s\) [\d, ]+\)|pid \d+|\(-?\d+ != -?\d+\)|[WEI]\d{4} [\d:.]+ \d+ "
)
# PyTorch notices a dead worker by a signal or by a broken pipe, whichever comes first: its words differ from run to run.
DEAD_WORKER = re.compile(r"DataLoader worker \(?#|ConnectionResetError|EOFError")
WARNING = re.compile(r"^.*Warning: .*\n(Consider .*\n)?(  .*\n)?", re.MULTILINE)
TIMEOUT_S = 120.0
STDIN = b"some words"


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
        """What is not the same. Under `run` the verdict follows the job's own output, after an empty line; what the job left
        running may go on writing beside it."""
        cut = len(self.out) if way == "run" and other.out[len(self.out) :][:1] == b"\n" else len(other.out)
        if way == "run" and _in_order(self.out.splitlines(), other.out.splitlines()):
            other = replace(other, out=self.out)
            cut = len(self.out)
        pairs = {
            "exit": (self.code, other.code),
            "stdout": (self.out, other.out[:cut]),
            "stderr": (self.err, other.err),
            "files": (self.files, other.files),
        }
        return [f"{name}: {str(a)[-500:]} -> {str(b)[-500:]}" for name, (a, b) in pairs.items() if a != b]


def _in_order(own: list[bytes], all_lines: list[bytes]) -> bool:
    """Every line of the one is in the other, in the same order."""
    rest = iter(all_lines)
    return all(line in rest for line in own)


def seen(code: int, out: bytes, err: bytes, inside: Path, work: str) -> Outcome:
    """What a bystander saw, without what is announced and what differs from run to run."""
    text = SAID.sub("", err.decode("utf-8", "replace"))
    text = ADDRESS.sub("#", WARNING.sub("", OURS.sub("", text))).replace(work, "WORK")
    if DEAD_WORKER.search(text):
        text = "a worker died\n"
    files = tuple(sorted(str(p.relative_to(inside)) for p in inside.rglob("*")))
    return Outcome(code, out.replace(work.encode(), b"WORK"), text, files)


def outcome(job: str, way: str, python: str = sys.executable, processes: Processes | None = None) -> Outcome:
    """Runs the job in a folder of its own."""
    suite, name = job.split(":")
    with tempfile.TemporaryDirectory() as work:
        bundle = Path(work) / "bundle"
        inside = Path(work) / "inside"
        site = Path(work) / "site"
        inside.mkdir()
        site.mkdir()
        (site / "sitecustomize.py").write_text("MARK = 'the user has one too'\n")
        (Path(work) / "in").write_bytes(STDIN)
        command = [python, str(HERE / f"{suite}.py"), name]
        env = environment(PYTHONPATH=f"{site}{os.pathsep}{SOURCE}")
        if way == "api":
            env["RECORD_INTO"] = str(bundle)
        elif way in ("record", "run"):
            ours = ["stallwise"] if processes is not None else [python, "-m", "stallwise"]
            command = [*ours, way, "-o", str(bundle), "--", *command]
        if processes is not None:
            code = processes.ask({"command": command, "env": env, "work": work})
            out, err = (Path(work, name).read_bytes() for name in ("out", "err"))
            assert code is not None, f"{job} did not end ({way}): {err[-2000:]!r}"
            return seen(code, out, err, inside, work)
        done = subprocess.run(command, cwd=inside, env=env, input=STDIN, capture_output=True, timeout=TIMEOUT_S)
        return seen(done.returncode, done.stdout, done.stderr, inside, work)


def environment(**more: str) -> dict[str, str]:
    """Ours without what a test runner or an outer recording put into it."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("STALLWISE", "RECORD_INTO", "PYTEST"))}
    return {**env, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "NO_COLOR": "1", **more}


class Processes:
    """Processes that are begun by one that has imported what they need already."""

    arguments: tuple[str, ...] = ("-",)

    def __init__(self) -> None:
        path = os.pathsep.join([str(HERE), str(SOURCE)])
        self._server = subprocess.Popen(
            [sys.executable, str(HERE / "forked.py"), *self.arguments],
            env=environment(PYTHONPATH=path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, wanted: dict[str, object]) -> int | None:
        """Its exit code; None where it did not end."""
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(json.dumps(wanted) + "\n")
        self._server.stdin.flush()
        code: int | None = json.loads(self._server.stdout.readline())
        return code

    def close(self) -> None:
        """No more jobs."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(30)


class Scripts(Processes):
    """A test's own scripts, plain or under a command of ours, in children of one process that has imported PyTorch already."""

    arguments = (".",)

    def start(self, command: list[str], cwd: Path, **env: str) -> Started:
        """Begins it; what it writes is in two files beside its folder's own."""
        out, err = (cwd / f".{name}-{len(list(cwd.glob('.out-*')))}" for name in ("out", "err"))
        wanted = {"start": command, "cwd": str(cwd), "env": environment(**env), "out": str(out), "err": str(err)}
        out.touch()
        pid = self.ask(wanted)
        assert pid
        return Started(self, pid, out, err)

    def run(self, command: list[str], cwd: Path, **env: str) -> Started:
        """Begins it and waits for its end."""
        return self.start(command, cwd, **env).wait()


class Started:
    """A script that runs, or has ended."""

    def __init__(self, server: Scripts, pid: int, out: Path, err: Path) -> None:
        self.pid, self.returncode = pid, 0
        self._server, self._out, self._err = server, out, err

    def wait(self) -> Started:
        """Until it has ended."""
        code = self._server.ask({"wait": self.pid})
        assert code is not None, f"it did not end: {self.stderr[-2000:]}"
        self.returncode = code
        return self

    @property
    def stdout(self) -> str:
        """What it has written so far."""
        return self._out.read_text(errors="replace")

    @property
    def stderr(self) -> str:
        """What it has written so far."""
        return self._err.read_text(errors="replace")


class Forks(Processes):
    """Jobs in children of one process that has imported PyTorch already."""

    arguments = ()

    def outcome(self, job: str, way: str) -> Outcome:
        """The same as `outcome`, many times faster."""
        with tempfile.TemporaryDirectory() as work:
            inside = Path(work) / "inside"
            inside.mkdir()
            code = self.ask({"job": job, "way": way, "work": work})
            out, err = (Path(work, name).read_bytes() for name in ("out", "err"))
            assert code is not None, f"{job} did not end ({way}): {err[-2000:]!r}"
            return seen(code, out, err, inside, work)


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
