"""Four small faults under `stallwise run` on one GPU: are cause and line right, and what does the recorder cost a step?

    python bench/gpu/line_programs.py [--seconds 30 30]

Prints a JSON line a program, with what was expected, and one for each of the two steps of recorder_overhead.py (59 ms of the
device's own work, and a launch-bound one). The line expected of a program is the one that ends in "# LINE".
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EXPECTED = {
    "slow_getitem": ("input-starved",),
    "kept_graph": ("memory-leak",),
    "item_in_loop": ("host-sync",),
    "for_loop_optimizer": ("optimizer-unfused", "launch-bound"),
}
LONGEST_S = 60.0


def wanted_line(program: Path) -> int:
    return next(n for n, text in enumerate(program.read_text().splitlines(), 1) if text.endswith("# LINE"))


def score(name: str) -> dict[str, Any]:
    """One program in a folder of its own, so that nothing of another is read."""
    program = HERE / "lines" / f"{name}.py"
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "stallwise",
            "run",
            "--json",
            "-q",
            "-o",
            "bundle",
            "--",
            sys.executable,
            str(program),
        ]
        begun_s = time.monotonic()
        source = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(HERE.parents[1] / "src"), os.environ.get("PYTHONPATH", "")]),
        }
        ran = subprocess.run(
            command, cwd=folder, env=source, capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
    row: dict[str, Any] = {"program": name, "seconds": round(time.monotonic() - begun_s, 1), "exit": ran.returncode}
    try:
        answer = json.loads(ran.stdout[ran.stdout.index("{\n") :])
    except ValueError:
        return {**row, "error": ran.stderr[-1500:]}
    found = next(iter(answer["findings"]), {})
    line = answer.get("code_line") or {}
    return {
        **row,
        "state": answer["state"],
        "cause": found.get("cause"),
        "expected": EXPECTED[name],
        "cause_right": found.get("cause") in EXPECTED[name],
        "code_line": line or None,
        "line_expected": wanted_line(program),
        "line_right": line.get("line") == wanted_line(program) and Path(line.get("file", "")).name == program.name,
        "headline": found.get("headline"),
        "ranked": answer["ranked"][:4],
    }


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, nargs=2, default=(30, 30), help="for the 59 ms step and the other")
    options.add_argument("--only", choices=sorted(EXPECTED))
    chosen = options.parse_args()
    for name in EXPECTED if not chosen.only else (chosen.only,):
        print(json.dumps(score(name)), flush=True)
    if chosen.only:
        return
    from recorder_overhead import SHAPES, measure

    for which, seconds in zip(SHAPES, chosen.seconds, strict=True):
        cost = measure(which, seconds, True)
        print(json.dumps({k: v for k, v in cost.items() if not k.startswith("ratios")}), flush=True)


if __name__ == "__main__":
    main()
