"""Time and memory of reading operation timelines: one file against json.load, and a folder of a thousand ranks.

    python bench/operation_speed.py one TIMELINE.json[.gz] [TIMES]    the file grown TIMES-fold, CPU seconds over json.load's
    python bench/operation_speed.py folder [RANKS] [STEPS]            a file a rank, wall seconds and peak memory

Targets: at most 0.5 of json.load and 300 MB; 1,024 ranks of 50 steps within 60 s and 1 GB on two cores.
"""

from __future__ import annotations

import gc
import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent), str(HERE)]

from many_ranks import Peak  # noqa: E402

ROUNDS = 3
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # as installed
LOAD = """
import json, sys, time
before = time.process_time()
json.load(open(sys.argv[1]))
print(time.process_time() - before)
"""
ANSWER = """
import sys, time
from stallwise.doctor.examine import diagnose
before = time.process_time()
found = diagnose(sys.argv[1], cache=False)
spent = time.process_time() - before
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(spent, sum(len(t) for t in found.evidence.table("operations")), int(peak) / 1024)
"""


def grown(path: Path, times: int, to: Path) -> None:
    """The same events over and over, each time some steps later."""
    text = (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()
    document = json.loads(text)
    events = document["traceEvents"] if isinstance(document, dict) else document
    timed = [e for e in events if e.get("ph") == "X"]
    length = max(e["ts"] + e["dur"] for e in timed) - min(e["ts"] for e in timed)
    steps = max(e["args"]["step"] for e in timed if "step" in e.get("args", {})) + 1
    more = [e for e in events if e.get("ph") != "X"]
    for at in range(times):
        for event in timed:
            args = event.get("args", {})
            moved = {**args, "step": args["step"] + at * steps} if "step" in args else args
            more.append({**event, "ts": event["ts"] + at * length, "args": moved})
    to.write_text(json.dumps({"traceEvents": more}))


def one(path: Path, times: int) -> None:
    """Prints both CPU times, taken in turn."""
    folder = Path(tempfile.mkdtemp(prefix="operations-"))
    try:
        large = folder / "timeline.json"
        grown(path, times, large)
        gc.collect()
        ratios = []
        for _ in range(ROUNDS):
            plain = float(subprocess.check_output([sys.executable, "-c", LOAD, str(large)]))
            own, rows, peak_mb = subprocess.check_output(
                [sys.executable, "-c", ANSWER, str(large)], env=COMPILED
            ).split()
            ratios.append(float(own) / plain)
            size = f"{int(rows):,} operations, {large.stat().st_size / 1e6:.0f} MB"
            times = f"json.load {plain:.2f} s, the answer {float(own):.2f} s ({ratios[-1]:.2f})"
            print(f"{size}: {times}, peak {float(peak_mb):.0f} MB", flush=True)
        print(f"best ratio {min(ratios):.2f}")
    finally:
        shutil.rmtree(folder)


def folder(ranks: int, steps: int) -> None:
    """One slow worker among all of them."""
    from tests.sim.job.planted import Fault, Plan
    from tests.sim.job.written import write_ranks

    from stallwise.doctor.examine import diagnose

    place = Path(tempfile.mkdtemp(prefix="operations-"))
    try:
        write_ranks(place, Plan("1f1b", ranks // 4, 4, 1, 8, steps, 7, faults=(Fault("worker", 5, 2, 0, 1.6),)))
        gc.collect()
        base_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        watch = Peak()
        watch.start()
        began, spent = time.perf_counter(), time.process_time()
        found = diagnose(str(place), cache=False)
        took, cpu = time.perf_counter() - began, time.process_time() - spent
        watch.over.set()
        print(f"{ranks} ranks x {steps} steps: {took:.1f} s ({cpu:.1f} s CPU of the main process), peak {watch.peak_mb:.0f} MB "
              f"(before: {base_mb:.0f} MB at most): {found.findings[0].headline}")  # fmt: skip
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    if sys.argv[1] == "one":
        one(Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 10)
    else:
        folder(*(int(x) for x in (sys.argv[2:] + ["1024", "50"][len(sys.argv) - 2 :])[:2]))
