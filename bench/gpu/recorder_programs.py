"""Programs of many kinds, plain and under `stallwise run`: what they cost, what was recorded, what the verdict says.

    python bench/gpu/recorder_programs.py OUT --published FOLDER [--seconds 380] [--only NAME...] [--together NAME...]

Runs the programs of programs/programs.toml one after the other, each plain and then recorded, until the time is up; those that are
left are named. Those of `--together` come first, recorded only and all at once: whether they live and what is said of them, no
times. Published programs are taken from FOLDER as published (SOURCES there names their commits) with made-up data. The
`stallwise` of this interpreter's environment records. Writes OUT/programs.json and OUT/told.txt as it goes, and OUT/bundles-N.tgz
(records, logs, traces) at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from program_data import prepare

OWN = Path(__file__).parent / "programs"
MOST_BYTES, MOST_FILES = 15 << 20, 4
PLAIN_LIMIT_S, RUN_LIMIT_S = 45.0, 75.0
Line = tuple[float, str]


def run(command: list[str], where: Path, path: str, limit_s: float) -> tuple[int, list[Line], float]:
    """Exit code, the lines of the output with the second at which each came, wall time."""
    env = {**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": path}
    began = time.monotonic()
    job = subprocess.Popen(
        command, cwd=where, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    late = threading.Timer(limit_s, lambda: os.killpg(job.pid, signal.SIGKILL))
    late.start()
    assert job.stdout is not None
    lines = [(time.monotonic() - began, raw.decode("utf-8", "replace").rstrip("\n")) for raw in job.stdout]
    code = job.wait()
    late.cancel()
    return code, lines, time.monotonic() - began


def step_ms(lines: list[Line], clock: str, steps: int) -> float | None:
    """The median step by the program's own clock, or by the time between the lines it names; the first third left out."""
    pattern = re.compile(clock)
    found = [(at, m) for at, text in lines for m in [pattern.search(text)] if m]
    if "ms" in pattern.groupindex:
        said = [float(m["ms"]) for _, m in found]
    elif "s" in pattern.groupindex:
        said = [float(m["s"]) * 1e3 for _, m in found]
    else:
        said = [(b[0] - a[0]) * 1e3 for a, b in zip(found, found[1:], strict=False)]
    said = said[len(said) // 3 :]
    return round(statistics.median(said) / steps, 4) if said else None


def recorded(bundle: Path) -> dict[str, Any]:
    """Medians of the record's own step times by window, and what the windows cost."""
    from stallwise.readers.records.rank_record import parse

    found: dict[str, Any] = {}
    for file in sorted(bundle.glob("*.jsonl")):
        if file.name == "processes.jsonl":
            continue
        record = parse(file.read_text(errors="replace").splitlines())
        by: dict[str, list[float]] = {}
        first = min((w.first for w in record.windows), default=len(record.step))
        for at, (window, duration) in enumerate(zip(record.window, record.duration_s, strict=True)):
            if at >= 3:
                untraced = "before" if record.step[at] < first else "later"
                by.setdefault(window or untraced, []).append(duration * 1e3)
        found[file.name] = {
            "steps": len(record.step), "border": record.boundary[-1] if record.boundary else None,
            **{f"{k}_ms": round(statistics.median(v), 3) for k, v in by.items()},
            "counts": {k: len(v) for k, v in by.items()},
            "windows": [(w.kind, w.first, w.last, w.start_s, w.stop_s) for w in record.windows],
            "samples": len(record.samples), "marks": [(name, note) for _, name, note in record.marks][:6],
        }  # fmt: skip
    found["traces"] = {f"{p.parent.name}/{p.name}": p.stat().st_size for p in bundle.glob("*/*.gz")}
    return found


def shortened(work: Path, program: dict[str, Any]) -> None:
    for file, old, new in program.get("shorter", ()):
        path = work / program["folder"] / file
        text = path.read_text()
        assert old in text, f"{file} no longer has {old!r}"
        path.write_text(text.replace(old, new))


def measure(name: str, program: dict[str, Any], work: Path, told: Path, left_s: float, plainly: bool) -> dict[str, Any]:
    where, path = work / program["folder"], str(work / program["path"]) if "path" in program else ""
    command = [sys.executable, *shlex.split(program["command"])]
    bundle = work / "bundles" / name
    wrapped = [sys.executable, "-m", "stallwise", "run", "-o", str(bundle), "--", *command]
    plain_code, plain, plain_s = run(command, where, path, min(PLAIN_LIMIT_S, left_s)) if plainly else (0, [], 0.0)
    code, lines, seconds = run(wrapped, where, path, min(RUN_LIMIT_S, left_s - plain_s))
    clock = (program["clock"], program.get("steps", 1))
    with told.open("a") as out:
        out.write(f"===== {name}\n" + "\n".join(text for _, text in lines[-90:])[-9000:] + "\n")
        if plain_code:
            out.write(f"----- plain ended with {plain_code}\n" + "\n".join(t for _, t in plain[-30:])[-3000:] + "\n")
    try:
        record: object = recorded(bundle)
    except Exception as broken:  # the other programs still run
        record = repr(broken)
    return {
        "name": name, "title": program["title"], "true": program["true"], "plain_code": plain_code, "run_code": code,
        "plain_ms": step_ms(plain, *clock), "run_ms": step_ms(lines, *clock), "plain_s": round(plain_s, 1),
        "run_s": round(seconds, 1), "record": record,
    }  # fmt: skip


def pack(bundles: Path, out: Path) -> None:
    """Records and logs first, then as many traces as fit into a few files."""
    files = sorted((p for p in bundles.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    groups: list[list[Path]] = [[]]
    size = 0
    for path in files:
        packed = path.stat().st_size if path.suffix == ".gz" else path.stat().st_size // 6
        if size + packed > MOST_BYTES and len(groups) < MOST_FILES:
            groups.append([])
            size = 0
        if size + packed <= MOST_BYTES:
            size += packed
            groups[-1].append(path)
    for n, group in enumerate(groups):
        with tarfile.open(out / f"bundles-{n}.tgz", "w:gz", compresslevel=3) as archive:
            for path in group:
                archive.add(path, path.relative_to(bundles))


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("out", type=Path)
    options.add_argument("--published", type=Path, required=True)
    options.add_argument("--seconds", type=float, default=380.0, help="no program begins later than this")
    options.add_argument("--overtime", type=float, default=50.0, help="seconds for the program that began last")
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--together", nargs="*", default=[])
    options.add_argument("--work", type=Path, default=Path("/tmp/recorder_programs"))
    chosen = options.parse_args()
    began = time.monotonic()
    shutil.rmtree(chosen.work, ignore_errors=True)
    chosen.work.mkdir(parents=True)
    prepare(chosen.published, chosen.work, OWN)
    programs = tomllib.loads((OWN / "programs.toml").read_text())
    rows: list[dict[str, Any]] = []
    for name in {*chosen.together, *(chosen.only or programs)}:
        shortened(chosen.work, programs[name])

    def one(name: str, label: str, left_s: float, alone: bool) -> None:
        rows.append(
            measure(label, programs[name], chosen.work, chosen.out / "told.txt", left_s + chosen.overtime, alone)
        )
        (chosen.out / "programs.json").write_text(json.dumps(rows, indent=1))
        print(f"{time.monotonic() - began:.0f} s", json.dumps(rows[-1]), flush=True)

    with ThreadPoolExecutor() as lanes:
        for number, name in enumerate(chosen.together):
            lanes.submit(one, name, f"{name}-{number}", chosen.seconds, False)
    for name in chosen.only or programs:
        left_s = chosen.seconds - (time.monotonic() - began)
        if left_s < 0:
            print("no time left for", name, flush=True)
        else:
            one(name, name, left_s, True)
    pack(chosen.work / "bundles", chosen.out)


if __name__ == "__main__":
    main()
