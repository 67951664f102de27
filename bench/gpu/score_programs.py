"""Ten programs on one GPU: each change made by hand in its own process, and tried inside the program by `stallwise try`.

    PYTHONPATH=src python3 bench/gpu/score_programs.py [--half dev|test] [--only gnn,vit] [--seconds 20] [--tiny] [--out FOLDER]

Prints one row a change: the trial's factor and the one by hand. Exit code 1 where a trial shows a gain that is none (interval above
1, truth below 1.01), or fewer than 95% of the conclusive trials lie within 5% of the hand. Processes by hand are forked
from one that has imported PyTorch, before it touches the device: starting costs a second instead of six.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
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
TOUCHED: set[str] = set()  # devices that this process has touched: none that it forks can use them


def by_hand(program: str, change: str, steps: int, out: Path) -> int:
    """Starts one process; its last line goes to `out`."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        with out.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            os.environ.update(CHANGE=change, STEPS=str(steps))
            if "cuda" in TOUCHED:
                os.execv(sys.executable, [sys.executable, str(HERE / f"{program}.py")])
            sys.path.insert(0, str(HERE))
            sys.argv = [program]
            runpy.run_path(str(HERE / f"{program}.py"), run_name="__main__")
            code = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", flush=True)
    os._exit(code)


def touched() -> bool:
    """Some builds touch the device when PyTorch is imported; then every process starts from nothing."""
    child = os.fork()
    if not child:
        import torch

        try:
            torch.zeros(1, device="cuda" if torch.cuda.is_available() else "cpu")
        except RuntimeError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0


def step_s(out: Path) -> float | None:
    """What such a process has printed."""
    for line in reversed(out.read_text().splitlines()):
        if line.startswith('{"change"'):
            return float(json.loads(line)["step_s"])
    return None


def waited(child: int) -> None:
    """It has ended."""
    os.waitpid(child, 0)


def hand(program: str, changes: tuple[str, ...], steps: int, folder: Path) -> dict[str, float | None]:
    """The step as is (the mean of one run before and one after) and with each change."""
    found: dict[str, float | None] = {}
    ends = []
    for change in ("", *changes, ""):
        out = folder / f"{program}-{change or 'as-is'}-{len(ends)}.txt"
        waited(by_hand(program, change, steps, out))
        if change:
            found[change] = step_s(out)
        else:
            ends.append(step_s(out))
        if step_s(out) is None:
            print(f"{program} {change}: {out.read_text()[-400:]}", flush=True)
    known = [e for e in ends if e]
    found[""] = sum(known) / len(known) if known else None
    found["as is twice"] = ends  # type: ignore[assignment]
    return found


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
    for change, after_s in truth.items():
        if not change or change == "as is twice":
            continue
        trial = next((t for t in answer["trials"] if t["name"] == change), {"state": "missing"})
        ratio = truth[""] / after_s if truth[""] and after_s else None
        off = trial["ratio"] / ratio - 1 if trial.get("ratio") and ratio else None
        low = trial.get("ratio_low")
        found.append({"program": program, "change": change, "state": trial["state"], "why": trial.get("why", ""),
                      "trial": trial.get("ratio"), "low": low, "high": trial.get("ratio_high"), "truth": ratio, "off": off,
                      "false_gain": bool(low and low > 1 and ratio and ratio < NONE)})  # fmt: skip
    return found


def show(row: dict[str, Any]) -> str:
    """One line."""
    figures = f"{row['trial']:.3f} ({row['low'] or 0:.3f} to {row['high'] or 0:.3f})" if row["trial"] else row["why"]
    truth = f"{row['truth']:.3f}" if row["truth"] else "?"
    off = f"{100 * row['off']:+.1f}%" if row["off"] is not None else ""
    wrong = "FALSE GAIN" if row["false_gain"] else ""
    return f"{row['program']:12} {row['change']:16} {row['state']:14} {figures[:60]:28} hand {truth:6} {off} {wrong}"


def main() -> int:
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=list(HALVES))
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--steps", type=int, default=40)
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
    import torch

    TOUCHED.update({"cuda"} if touched() else ())

    began = time.monotonic()
    if not asked.no_hand:
        # Compilers fill their cache together, before anything is timed.
        children = [by_hand(p, "compile", 8, folder / f"{p}.warm") for p, c in programs.items() if "compile" in c]
        for child in children:
            waited(child)
        print(f"{time.monotonic() - began:5.0f} s  compilers are warm", flush=True)
    every: list[dict[str, Any]] = []
    answers: dict[str, Any] = {}
    truths: dict[str, Any] = {}
    for program, changes in programs.items():
        truths[program] = {} if asked.no_hand else hand(program, changes, asked.steps, folder)
        at = time.monotonic() - began
        base = truths[program].get("")
        print(f"{at:5.0f} s  {program} by hand: {1e3 * base if base else 0:.2f} ms as is", flush=True)
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
    print(f"{len(near)} of {len(done)} conclusive within 5%, {len(false)} false gains, torch {torch.__version__}")
    return 0 if not false and len(near) >= 0.95 * len(done) else 1


if __name__ == "__main__":
    sys.exit(main())
