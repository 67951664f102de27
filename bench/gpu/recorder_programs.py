"""Programs of many kinds, plain and under `stallwise run`: what they cost, what was recorded, what the verdict says.

    python bench/gpu/recorder_programs.py OUT [--budget 330] [--only NAME...] [--known NAME...]

Runs one program after the other, plain and recorded; once the budget is spent, the rest recorded only, three at a time (their
step times are then no measure). `--known` names programs whose plain run has been measured before. Prints one row a program and
writes OUT/programs.json, OUT/bundles.tgz (records, small traces, logs) and OUT/verdicts.txt. Programs of other people are taken
from .gpu/ (nanoGPT and PyTorch's examples, as published) where that folder is.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

REPO = Path(__file__).parents[2]
OWN = Path(__file__).parent / "programs"
PUBLIC = REPO / ".gpu"
SAID_MS = re.compile(r"([\d.]+) ?ms\b|ms/batch +([\d.]+)|Time +([\d.]+) \(")
MOST_BYTES = 15 << 20


def programs(work: Path) -> dict[str, tuple[list[str], Path]]:
    """name -> command and folder, most wanted first."""
    python = sys.executable
    found: dict[str, tuple[list[str], Path]] = {}

    def own(name: str) -> None:
        found[name] = ([python, str(OWN / f"{name}.py")], work)

    nano, examples = work / "nanoGPT", work / "examples"
    for name in ("generate_gpt2", "jax_loop"):
        own(name)
    if nano.exists():
        char = ["config/train_shakespeare_char.py", "--max_iters=220", "--eval_interval=1000", "--eval_iters=2"]
        big = [
            "--dataset=synth",
            "--batch_size=12",
            "--gradient_accumulation_steps=4",
            "--max_iters=45",
            "--eval_iters=2",
        ]
        found["nano124_eager"] = ([python, "train.py", *big, "--compile=False", "--out_dir=o1"], nano)
        found["nano_char"] = ([python, "train.py", *char, "--compile=False", "--out_dir=o3"], nano)
    if examples.exists():
        found["word_lstm"] = (
            [python, "main.py", "--accel", "--epochs", "1", "--log-interval", "50"],
            examples / "word_language_model",
        )
        found["dcgan_fake"] = (
            [python, "main.py", "--dataset", "fake", "--accel", "--niter", "4", "--outf", "."],
            examples / "dcgan",
        )
        found["imagenet_dummy"] = (
            [python, "main.py", "--dummy", "-a", "resnet50", "-b", "256", "-j", "10", "--epochs", "1", "-p", "1"],
            examples / "imagenet",
        )
    for name in ("bert_trainer", "lightning_resnet", "serve_pictures", "sample_images", "actor_critic", "lbfgs_fit"):
        own(name)
    for name in ("bare_tensors", "thread_trainer", "graph_captured", "out_of_memory"):
        own(name)
    if examples.exists():
        found["mnist"] = ([python, "main.py", "--epochs", "1", "--log-interval", "20"], examples / "mnist")
        found["vae"] = ([python, "main.py", "--epochs", "1", "--log-interval", "20"], examples / "vae")
    return found


def prepare(work: Path) -> None:
    """The public programs with made-up data in the shapes that they expect."""
    if not PUBLIC.exists():
        return
    for name in ("nanoGPT", "examples"):
        if (PUBLIC / name).exists():
            shutil.copytree(PUBLIC / name, work / name)
    noise = random.Random(0)
    for folder, vocabulary in (("shakespeare_char", 65), ("synth", 50304)):
        place = work / "nanoGPT" / "data" / folder
        place.mkdir(parents=True, exist_ok=True)
        for part in ("train", "val"):
            words = [noise.randrange(vocabulary) for _ in range(200_000)]
            (place / f"{part}.bin").write_bytes(struct.pack(f"<{len(words)}H", *words))
    (work / "nanoGPT" / "data" / "shakespeare_char" / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": 65}))
    text = work / "examples" / "word_language_model" / "data" / "wikitext-2"
    for part, lines in (("train", 9000), ("valid", 300), ("test", 300)):
        rows = [" ".join(f"w{int(noise.paretovariate(0.6)) % 20000}" for _ in range(25)) for _ in range(lines)]
        (text / f"{part}.txt").write_text("\n".join(rows) + "\n")
    main = work / "examples" / "imagenet" / "main.py"
    main.write_text(main.read_text().replace("1281167", str(256 * 36)).replace("FakeData(50000", "FakeData(512"))
    raw = work / "examples" / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part, count in (("train", 60_000), ("t10k", 2_000)):
        (raw / f"{part}-images-idx3-ubyte").write_bytes(
            struct.pack(">IIII", 2051, count, 28, 28) + noise.randbytes(count * 784)
        )
        labels = bytes(noise.randrange(10) for _ in range(count))
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + labels)


def own_clock_ms(text: str) -> float | None:
    """The median of the step times that the program itself prints, its first third left out."""
    said = [float(next(g for g in m.groups() if g)) * (1e3 if m[3] else 1.0) for m in SAID_MS.finditer(text)]
    said = said[len(said) // 3 :]
    return statistics.median(said) if said else None


def run(command: list[str], where: Path, limit_s: float) -> tuple[int, str, float]:
    """Exit code, output, wall time."""
    env = {**os.environ, "PYTHONPATH": str(REPO / "src"), "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=where, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit_s
        )
        code, out = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        code, out = 124, late.stdout or b""
    return code, out.decode("utf-8", "replace"), time.monotonic() - began


def recorded_ms(bundle: Path) -> dict[str, Any]:
    """Medians of the record's own step times by window, and what the windows cost."""
    sys.path.insert(0, str(REPO / "src"))
    from stallwise.readers.native._record_file import parse

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
            "steps": len(record.step),
            "border": record.border[-1] if record.border else None,
            **{f"{k}_ms": round(statistics.median(v), 3) for k, v in by.items()},
            "start_stop_s": [(w.kind, w.start_s, w.stop_s) for w in record.windows],
            "samples": len(record.samples),
            "marks": [(name, note) for _, name, note in record.marks][:4],
        }
    found["traces"] = {f"{p.parent.name}/{p.name}": p.stat().st_size for p in bundle.glob("*/*.gz")}
    return found


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("out", type=Path)
    options.add_argument("--budget", type=float, default=330.0)
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--known", nargs="*", default=[])
    options.add_argument("--work", type=Path, default=Path("/tmp/recorder_programs"))
    chosen = options.parse_args()
    shutil.rmtree(chosen.work, ignore_errors=True)
    chosen.work.mkdir(parents=True)
    prepare(chosen.work)
    rows: list[dict[str, Any]] = []
    verdicts: list[str] = []
    began = time.monotonic()

    def one(name: str, command: list[str], where: Path, alone: bool) -> None:
        measured = alone and name not in chosen.known
        plain_code, plain, plain_s = run(command, where, 60) if measured else (0, "", 0.0)
        bundle = chosen.work / "bundles" / name
        wrapped = [sys.executable, "-m", "stallwise", "run", "-o", str(bundle), "--", *command]
        code, out, seconds = run(wrapped, where, 90 if alone else 45)
        answer = out[out.rfind("\n\n", 0, out.find("because")) :] if "because" in out else out[-1500:]
        head = next((x for x in answer.splitlines() if x.strip()), "")
        row = {
            "name": name, "alone": alone, "plain_code": plain_code if measured else None,
            "run_code": code, "plain_ms": own_clock_ms(plain), "run_own_clock_ms": own_clock_ms(out),
            "plain_s": round(plain_s, 1), "run_s": round(seconds, 1),
            "record": recorded_ms(bundle) if bundle.exists() else None, "verdict": head[:200],
        }  # fmt: skip
        rows.append(row)
        verdicts.append(f"===== {name}\n{out[-6000:]}\n")
        if plain_code:
            verdicts.append(f"----- plain ended with {plain_code}:\n{plain[-1500:]}\n")
        print(json.dumps(row), flush=True)
        (chosen.out / "programs.json").write_text(json.dumps(rows, indent=1))
        (chosen.out / "verdicts.txt").write_text("\n".join(verdicts))

    every = programs(chosen.work)
    wanted = [name for name in (chosen.only or every) if name in every]
    late = []
    for name in wanted:
        if time.monotonic() - began > chosen.budget:
            late.append(name)
        else:
            one(name, *every[name], True)
    with ThreadPoolExecutor(3) as lanes:
        list(lanes.map(lambda name: one(name, *every[name], False), late))
    pack(chosen.work / "bundles", chosen.out / "bundles.tgz")


def pack(bundles: Path, target: Path) -> None:
    """Records, logs and as many traces as fit into one file."""
    files = sorted((p for p in bundles.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    size = 0
    with tarfile.open(target, "w:gz") as archive:
        for path in files:
            packed = path.stat().st_size if path.suffix == ".gz" else path.stat().st_size // 6
            if size + packed < MOST_BYTES:
                size += packed
                archive.add(path, path.relative_to(bundles))


if __name__ == "__main__":
    main()
