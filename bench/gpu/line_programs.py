"""Four small faults under `stallwise run` on one GPU: are cause and line right, and what does the recorder cost a step?

    python bench/gpu/line_programs.py [--seconds 30 30] [--out FOLDER]

Prints a JSON line a program, with what was expected, and one for each of the two steps of recorder_overhead.py (59 ms of the
device's own work, and a launch-bound one). FOLDER gets these rows and the programs' bundles. The line expected of a program is
the one that ends in "# LINE".
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
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
MOST_BYTES = 12 << 20  # of a bundle that is kept


def wanted_line(program: Path) -> int:
    return next(n for n, text in enumerate(program.read_text().splitlines(), 1) if text.endswith("# LINE"))


def keep(bundle: Path, out: Path) -> None:
    """Records, logs and the traces that fit."""
    size = 0
    with tarfile.open(out / f"{bundle.parent.name}.tgz", "w:gz", compresslevel=3) as archive:
        for path in sorted((p for p in bundle.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size):
            size += path.stat().st_size // (1 if path.suffix == ".gz" else 6)
            if size < MOST_BYTES:
                archive.add(path, path.relative_to(bundle))


def score(name: str, out: Path | None = None) -> dict[str, Any]:
    """One program in a folder of its own, so that nothing of another is read."""
    program = HERE / "lines" / f"{name}.py"
    with tempfile.TemporaryDirectory() as outer:
        folder = Path(outer) / name
        folder.mkdir()
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
        if out is not None and (folder / "bundle").is_dir():
            keep(folder / "bundle", out)
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


def tell(row: dict[str, Any], out: Path | None) -> None:
    """Printed, and kept where asked for."""
    print(json.dumps(row), flush=True)
    if out is not None:
        with (out / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, nargs=2, default=(30, 30), help="for the 59 ms step and the other")
    options.add_argument("--only", choices=sorted(EXPECTED))
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    for name in EXPECTED if not chosen.only else (chosen.only,):
        tell(score(name, chosen.out), chosen.out)
    if chosen.only:
        return
    from recorder_overhead import SHAPES, measure

    for which, seconds in zip(SHAPES, chosen.seconds, strict=True):
        cost = measure(which, seconds, True)
        tell({k: v for k, v in cost.items() if not k.startswith("ratios")}, chosen.out)


if __name__ == "__main__":
    main()
