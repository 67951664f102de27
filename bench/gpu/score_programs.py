"""Ten programs on one GPU: each change made by hand in its own process, and tried inside the program by `stallwise try`.

    PYTHONPATH=src python3 bench/gpu/score_programs.py [--half dev|test] [--only gnn,vit] [--seconds 20] [--tiny] [--out FOLDER]

Prints one row a change: the trial's factor and the one by hand. Exit code 1 where a trial shows a gain that is none (interval above
1, truth below 1.01), or fewer than 95% of the conclusive trials lie within 5% of the hand. Processes by hand start
together and warm up; then they are timed in turns, so that what a machine does in one minute is in all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "tried"
HALVES = {
    "dev": {
        "gpt_by_hand": ("fused-attention", "compile", "stale-reads"),
        "diffusion": ("bf16-autocast", "channels-last", "cudnn-benchmark"),
        "speech": ("fused-attention", "compile", "pinned-copies"),
        "ppo": ("compile", "fused-optimizer", "bf16-autocast"),
        "detector": ("last-batch-again", "channels-last", "bf16-autocast"),
    },
    "test": {
        "dlrm": ("last-batch-again", "tf32", "fused-optimizer"),
        "vit": ("last-batch-again", "bf16-autocast", "tf32"),
        "gnn": ("stale-reads", "compile", "tf32"),
        "lora": ("no-recompute", "compile", "fused-optimizer"),
        "mixer_port": ("tf32", "bf16-autocast", "compile"),
    },
}
WITHIN, NONE = 0.05, 1.01
WARM_UP_S = 40.0
READY_S = 150.0  # for compilers
TURNS, TURN_S = 4, 60.0


class Hand:
    """A program with one change, in its own process: it warms up beside others and is timed when it is its turn."""

    def __init__(self, program: str, change: str, steps: int, folder: Path, number: int) -> None:
        self.program, self.change = program, change
        self._gate = folder / f"{program}-{change or 'as-is'}-{number}"
        env = {**os.environ, "CHANGE": change, "STEPS": str(steps), "GATE": str(self._gate), "OMP_NUM_THREADS": "4"}
        self._out = self._gate.with_suffix(".txt").open("w+")
        line = [sys.executable, str(HERE / f"{program}.py")]
        self._process = subprocess.Popen(line, env=env, stdout=self._out, stderr=subprocess.STDOUT)

    def ready(self) -> bool:
        """Warm, or dead."""
        return self._gate.with_suffix(".ready").exists() or self._process.poll() is not None

    def take(self, turn: int) -> None:
        """Its turn: some steps to warm up again, then those that are timed."""
        self._gate.with_suffix(f".go{turn}").touch()
        until_s = time.monotonic() + TURN_S
        while not self._gate.with_suffix(f".done{turn}").exists():
            if self._process.poll() is not None or time.monotonic() > until_s:
                return
            time.sleep(0.002)

    def turns_s(self) -> list[float]:
        """What a step took, turn by turn."""
        self._gate.with_suffix(".end").touch()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._out.seek(0)
        printed = self._out.read()
        for line in reversed(printed.splitlines()):
            if line.startswith('{"change"'):
                return [float(s) for s in json.loads(line)["turns_s"]]
        print(f"{self.program} {self.change}: {printed[-400:]}", flush=True)
        return []


def hand(programs: dict[str, tuple[str, ...]], steps: int, folder: Path) -> dict[str, dict[str, Any]]:
    """Of each program and change the step, turn by turn; two processes as is show what two equal ones differ by."""
    all_of_them = [
        Hand(p, change, steps, folder, n) for p, its in programs.items() for n, change in enumerate(("", *its, ""))
    ]
    until_s = time.monotonic() + READY_S
    while not all(h.ready() for h in all_of_them) and time.monotonic() < until_s:
        time.sleep(0.1)
    for program in programs:
        of_it = [h for h in all_of_them if h.program == program]
        for turn in range(TURNS):
            for one in of_it if turn % 2 else reversed(of_it):
                one.take(turn)
    found: dict[str, dict[str, Any]] = {p: {"as is": []} for p in programs}
    for one in all_of_them:
        if one.change:
            found[one.program][one.change] = one.turns_s()
        else:
            found[one.program]["as is"].append(one.turns_s())
    return found


def by_hand(truth: dict[str, Any], change: str) -> tuple[float, float] | None:
    """Factor of a change, median over turns, and what the two processes as is differ by."""
    first, second = truth["as is"]
    pairs = [(0.5 * (a + b) / c, a / b) for a, b, c in zip(first, second, truth[change], strict=False)]
    if not pairs:
        return None
    return statistics.median(r for r, _ in pairs), abs(statistics.median(r for _, r in pairs) - 1)


def tried(program: str, seconds: float, folder: Path, more: list[str]) -> dict[str, Any]:
    """What `stallwise try` found, and how long it took."""
    began = time.monotonic()
    line = [sys.executable, "-m", "stallwise", "try", "--json", "--seconds", str(seconds), "-o", str(folder), *more]
    line += ["--", sys.executable, str(HERE / f"{program}.py")]
    env = {**os.environ, "SECONDS": str(2 * seconds + WARM_UP_S), "CHANGE": "", "STEPS": "0"}
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=env, timeout=400)
    took_s = time.monotonic() - began
    try:
        answer: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    except ValueError:
        print(f"{program}: no answer ({done.returncode})\n{done.stderr[-1500:]}", flush=True)
        file = folder / "trials.json"
        answer = json.loads(file.read_text()) if file.is_file() else {"trials": []}
    return {"took_s": took_s, "log": done.stderr[-4000:], **answer}


def rows(program: str, truth: dict[str, Any], answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Trial against hand."""
    found = []
    for change in truth:
        if change == "as is":
            continue
        trial = next((t for t in answer["trials"] if t["name"] == change), {"state": "missing"})
        ratio, doubt = by_hand(truth, change) or (None, None)
        off = trial["ratio"] / ratio - 1 if trial.get("ratio") and ratio else None
        low = trial.get("ratio_low")
        found.append({"program": program, "change": change, "state": trial["state"], "why": trial.get("why", ""),
                      "trial": trial.get("ratio"), "low": low, "high": trial.get("ratio_high"), "truth": ratio, "doubt": doubt,
                      "off": off, "false_gain": bool(low and low > 1 and ratio and ratio < NONE)})  # fmt: skip
    return found


def show(row: dict[str, Any]) -> str:
    """One line."""
    figures = f"{row['trial']:.3f} ({row['low'] or 0:.3f} to {row['high'] or 0:.3f})" if row["trial"] else row["why"]
    truth = f"{row['truth']:.3f} +-{100 * row['doubt']:.1f}%" if row["truth"] else "?"
    off = f"{100 * row['off']:+.1f}%" if row["off"] is not None else ""
    wrong = "FALSE GAIN" if row["false_gain"] else ""
    return f"{row['program']:12} {row['change']:16} {row['state']:14} {figures[:60]:28} hand {truth:13} {off} {wrong}"


def main() -> int:
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=list(HALVES))
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--no-hand", action="store_true")
    parser.add_argument("--no-try", action="store_true")
    parser.add_argument("--more", default="", help="further options of `try`, blanks between them")
    parser.add_argument("--out", default=os.environ.get("OUT", ""))
    asked = parser.parse_args()
    if asked.tiny:
        os.environ["TINY"] = "1"
    programs: dict[str, tuple[str, ...]] = {}
    for half, its in HALVES.items():
        if asked.half in (None, half):
            programs.update({p: c for p, c in its.items() if not asked.only or p in asked.only.split(",")})
    folder = Path(tempfile.mkdtemp())
    out = Path(asked.out or folder)
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor"))
    began = time.monotonic()
    every: list[dict[str, Any]] = []
    answers: dict[str, Any] = {}
    truths: dict[str, Any] = {p: {} for p in programs} if asked.no_hand else hand(programs, asked.steps, folder)
    print(f"{time.monotonic() - began:5.0f} s  by hand", flush=True)
    for program in programs:
        at = time.monotonic() - began
        shown = {c: [round(1e3 * statistics.median(s), 2) for s in (its if c == "as is" else [its]) if s]
                 for c, its in truths[program].items()}  # fmt: skip
        print(f"{at:5.0f} s  {program} by hand, ms: {shown}", flush=True)
        answers[program] = (
            {"trials": []} if asked.no_try else tried(program, asked.seconds, folder / program, asked.more.split())
        )
        every += rows(program, truths[program], answers[program])
        for row in every[-3:] if not asked.no_hand else []:
            print(show(row), flush=True)
        made = [t for t in answers[program]["trials"] if t["state"] != "not applicable"]
        said = [(t["name"], t["state"], round(t.get("ratio") or 0, 3)) for t in made]
        print(f"{time.monotonic() - began:5.0f} s  {program}: {said}", flush=True)
        (out / "programs.json").write_text(json.dumps({"rows": every, "truths": truths, "answers": answers}, indent=1))
        with tarfile.open(out / f"bundles{len(answers) // 2}.tar", "a") as tar:
            if (folder / program).is_dir():
                tar.add(folder / program, program)
    done = [r for r in every if r["off"] is not None and r["state"] != "inconclusive"]
    near = [r for r in done if abs(r["off"]) <= WITHIN]
    false = [r for r in every if r["false_gain"]]
    print(f"{len(near)} of {len(done)} conclusive within 5%, {len(false)} false gains")
    return 0 if not false and len(near) >= 0.95 * len(done) else 1


if __name__ == "__main__":
    sys.exit(main())
