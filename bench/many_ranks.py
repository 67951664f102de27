"""A thousand rank files at once: time a rank against one file by itself, and peak memory of the whole.

    python bench/many_ranks.py [--ranks 1000] [--events 20000] [--workers N] [--ray]

Targets: time a rank at most 1.3 times the single-file time over the workers; peak memory below 1 GB; Ray's answer
equals the local one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent), str(HERE)]
os.environ["STALLWISE_CACHE"] = "off"

from tests.measures.rank_copies import copies, plain_training  # noqa: E402

from stallwise.doctor.engine_local import usable_cores  # noqa: E402
from stallwise.doctor.examine import diagnose  # noqa: E402
from stallwise.render.json import to_dict  # noqa: E402

DISTINCT = 8  # ranks written out; the rest are copies of these with their own number


def write_ranks(folder: Path, ranks: int, events: int) -> None:
    """Files of about this many events; rank 3 waits for its input."""
    kernels = 60
    steps = max(events // (2 * kernels + 10), 2)
    doc = plain_training(steps=steps, kernels=kernels)
    made = list(copies(doc, DISTINCT, late=(3,), kind="input", delay_us=900.0))
    for rank in range(ranks):
        base = made[rank if rank < DISTINCT else (4 + rank % (DISTINCT - 4))]
        base = {**base, "distributedInfo": {"rank": rank, "world_size": ranks, "backend": "nccl"}}
        (folder / f"rank-{rank}.json").write_text(json.dumps(base))


class Peak(threading.Thread):
    """Watches the memory of this process and its children."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_mb, self.over = 0.0, threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.2):
            self.peak_mb = max(self.peak_mb, _proportional_mb(os.getpid()))


def _proportional_mb(root: int) -> float:
    """Memory with shared pages counted once, of a process and all below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    total, todo = 0.0, [root]
    while todo:
        process = todo.pop()
        todo += children.get(process, [])
        try:
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next((float(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")), 0.0)
    return total / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=usable_cores())
    parser.add_argument("--ray", action="store_true")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="many-ranks-"))
    try:
        write_ranks(folder, args.ranks, args.events)
        one = folder / "rank-0.json"
        diagnose(str(one), cache=False)  # warm: imports and disk
        single, single_cpu = (min(times) for times in zip(*(_timed(str(one)) for _ in range(3)), strict=True))
        spent = _cpu_s()
        watch = Peak()
        watch.start()
        began = time.perf_counter()
        answer = diagnose(str(folder), workers=args.workers, cache=False)
        whole = time.perf_counter() - began
        watch.over.set()
        result = {
            "ranks": args.ranks,
            "workers": args.workers,
            "file_mb": round(one.stat().st_size / 1e6, 1),
            "single_s": round(single, 3),
            "whole_s": round(whole, 1),
            "per_rank_s": round(whole / args.ranks, 4),
            "ratio_to_single_over_workers": round(whole / args.ranks / (single / args.workers), 2),
            "cpu_ratio": round((_cpu_s() - spent) / (args.ranks * single_cpu), 2),  # the same, deaf to a busy machine
            "peak_mb": round(max(watch.peak_mb, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)),
            "first": answer.ranked[0],
            "headline": answer.findings[0].headline if answer.findings else "",
        }
        if args.ray:
            os.environ["PYTHONPATH"] = str(HERE.parent / "src")
            remote = diagnose(str(folder), engine="ray", workers=args.workers, cache=False)
            result["ray_equals_local"] = json.dumps(to_dict(remote)) == json.dumps(to_dict(answer))
        print(json.dumps(result, indent=1))
    finally:
        shutil.rmtree(folder)


def _timed(path: str) -> tuple[float, float]:
    began, spent = time.perf_counter(), _cpu_s()
    diagnose(path, cache=False)
    return time.perf_counter() - began, _cpu_s() - spent


def _cpu_s() -> float:
    """Of this process and its finished children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


if __name__ == "__main__":
    main()
