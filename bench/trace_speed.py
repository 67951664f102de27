"""From a million-event trace to columns and to a verdict, as ratios to json.load taken in the same run.

    python bench/trace_speed.py [SOURCE.json.gz] [--events 1000000] [--repeat 3] [--no-hta]
    python bench/trace_speed.py --growth 1000000 2000000 4000000 8000000

Targets: columns <= 0.35 and 200 MB, verdict <= 0.45 and 400 MB, in proportion to 8 million events; where HTA is installed
columns >= 20x and the verdict >= 10x faster than its load plus temporal, kernel and overlap breakdowns; --help <= 1.5x a bare
click program.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from grow_trace import grow  # noqa: E402

SHARED = Path(os.environ.get("STALLWISE_SHARED", HERE.parents[1] / "shared"))
DEFAULT = SHARED / "data/traces/hta/a100_16rank_rank0.json.gz"

PROGRAMS = {
    "json.load": "import gzip, json; json.load(gzip.open(PATH))",
    "columns": (
        "from pathlib import Path\n"
        "from stallwise.evidence.artifact import Artifact\n"
        "from stallwise.readers.native import torch_trace\n"
        "list(torch_trace.read(Artifact(PATH, Path(PATH))))"
    ),
    "verdict": (
        "from stallwise.doctor.examine import diagnose\n"
        "from stallwise.render.json import to_dict\n"
        "to_dict(diagnose(PATH, cache=False))"
    ),
    "HTA": (
        "import logging, os; logging.disable(50)\n"
        "from hta.trace_analysis import TraceAnalysis\n"
        "t = TraceAnalysis(trace_files={0: PATH}, trace_dir=os.path.dirname(PATH))\n"
        "t.get_temporal_breakdown(visualize=False); t.get_gpu_kernel_breakdown(visualize=False)\n"
        "t.get_comm_comp_overlap(visualize=False)"
    ),
    "TraceLens": (
        "from TraceLens import TreePerfAnalyzer\n"
        "t = TreePerfAnalyzer.from_file(PATH)\n"
        "t.get_df_gpu_timeline(); t.get_kernel_launchers()"
    ),
    "bare click": "import click; click.command()(lambda: None).main(['--help'], standalone_mode=False)",
    "--help": "from stallwise.surfaces.cli import main; main.main(['--help'], standalone_mode=False)",
}
OTHERS = Path(
    os.environ.get("OTHERS") or HERE.parent / ".venv-others/bin/python"
)  # a Python that has HTA and TraceLens
# Processes that share the reading count with their own peak, though they share most of its pages.
MEASURE = (
    "import resource, sys\nPATH = sys.argv[1]\n{program}\n"
    "print('\\n@', sum(resource.getrusage(w).ru_maxrss for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024)"
)
Row = tuple[float, float, float]


def python_with(module: str) -> str | None:
    """The Python that has this module: the one of the other tools, or our own."""
    for python in (str(OTHERS), sys.executable):
        if Path(python).is_file():
            asked = subprocess.run([python, "-c", f"import {module}"], capture_output=True, cwd=HERE, check=False)
            if asked.returncode == 0:
                return python
    return None


def measured(names: Sequence[str], path: str, repeat: int, python: str = sys.executable) -> dict[str, Row]:
    """Of each program the median wall seconds of a fresh process (start included), its median CPU seconds and its peak in MB.

    They take turns, so that a busy minute of the machine meets all of them.
    """
    runs: dict[str, list[Row]] = {name: [] for name in names}
    for _ in range(repeat):
        for name in names:
            runs[name].append(_once(name, path, python))
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in runs.items()}
    return {name: (medians[name][0], medians[name][1], max(peak for _, _, peak in rows)) for name, rows in runs.items()}


def _once(name: str, path: str, python: str) -> Row:
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent / "src"), "STALLWISE_CACHE": "off"}
    before, began = _children_s(), time.perf_counter()
    done = subprocess.run(
        [python, "-c", MEASURE.format(program=PROGRAMS[name]), path],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    wall, spent = time.perf_counter() - began, _children_s() - before
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    return wall, spent, float(done.stdout.rsplit("@", 1)[1])


def _children_s() -> float:
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def growth(source: Path, sizes: list[int]) -> dict[str, object]:
    """The verdict alone, once at each size: processor seconds, peak memory, and the slope of the logarithms."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = Path(folder) / "rank-0.json.gz"
            count = grow(source, path, size)
            wall, cpu, peak = _once("verdict", str(path), sys.executable)
            rows.append(
                {"events": count, "seconds": round(wall, 1), "cpu_seconds": round(cpu, 2), "peak_mb": round(peak)}
            )
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    x, y = ([math.log(row[key]) for row in rows] for key in ("events", "cpu_seconds"))
    slope = statistics.linear_regression(x, y).slope if len(rows) > 1 else math.nan
    return {"growth": rows, "exponent": round(slope, 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-hta", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--growth", type=int, nargs="+", metavar="EVENTS", help="only how the verdict grows with these")
    args = parser.parse_args()
    if args.growth:
        print(json.dumps(growth(args.source, args.growth), indent=None if args.json else 1))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank-0.json.gz"
        count = grow(args.source, path, args.events)
        rows = measured(("json.load", "columns", "verdict"), str(path), args.repeat)
        if not args.no_hta and (python := python_with("hta")):
            rows |= measured(("HTA",), str(path), 1, python)
        rows |= measured(("bare click", "--help"), "", max(args.repeat, 5))
    result: dict[str, object] = {
        "events": count,
        "seconds": {name: round(wall, 3) for name, (wall, _, _) in rows.items()},
        "cpu_seconds": {name: round(cpu, 3) for name, (_, cpu, _) in rows.items()},
        "peak_mb": {name: round(peak) for name, (_, _, peak) in rows.items()},
    }
    # Wall clocks of a shared machine wander; CPU time tells the same on a quiet one.
    for word, at in (("", 0), ("_cpu", 1)):
        base = rows["json.load"][at]
        result[f"columns_over_json{word}"] = round(rows["columns"][at] / base, 3)
        result[f"verdict_over_json{word}"] = round(rows["verdict"][at] / base, 3)
        result[f"help_over_click{word}"] = round(rows["--help"][at] / rows["bare click"][at], 2)
        if "HTA" in rows:
            result[f"hta_over_columns{word}"] = round(rows["HTA"][at] / rows["columns"][at], 1)
            result[f"hta_over_verdict{word}"] = round(rows["HTA"][at] / rows["verdict"][at], 1)
    print(json.dumps(result, indent=None if args.json else 1))


if __name__ == "__main__":
    main()
