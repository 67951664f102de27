"""The long run on many cores: processes that damage on their own, watched from outside, and one report of them all.

    python -m tests.fuzz.many --processes 15 --seconds 560 --out fuzz --seeds ../shared/data

A process that does not answer within its limits is ended and counted, one that dies is counted as an escape, and both are
replaced: whatever no signal of Python's can interrupt is found here.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from stallwise.evidence.artifact import Artifact
from stallwise.readers import all_readers
from stallwise.readers.shapes.unwrap import plain
from tests.fuzz.guide import Guide
from tests.fuzz.harness import CROWD, LIMIT_S, PAGES_S, Fuzz, confined, peak_bytes, seeds
from tests.fuzz.served import has_mcp
from tests.fuzz.tally import Tally, Told

SILENT_S = 4 * LIMIT_S + 2 * PAGES_S  # of its own work: a case has ended by then, or nothing will end it
MOST_KEPT = 40  # new seeds that a process hands back: the smallest of them
REPORT_S = 2.0
SHARES = {
    "readers": 0.62,
    "shapes": 0.28,
    "words": 0.05,
    "whole": 0.035,
    "command": 0.015,
    "page": 0.001,
    "mcp": 0.001,
}  # the parts are quicker than the whole
SMALL_BYTES = 8_000  # of a seed, where a format has one so small
WRITTEN_S = 15.0  # a run that is cut still tells what it saw


def seeds_by_reader(files: list[Path]) -> list[list[Path]]:
    """The seeds that each reader knows; a reader without one is not tried, and the report says so."""
    found: dict[str, list[Path]] = {r.FORMAT: [] for r in all_readers()}
    for file in files:
        try:
            artifact = plain(Artifact(file.name, file))
            for reader in all_readers():
                if reader.recognises(file.name, artifact.head):
                    found[reader.FORMAT].append(file)
        except Exception:
            continue
    print("readers without a seed:", sorted(k for k, v in found.items() if not v), flush=True)
    return [[f for f in x if f.stat().st_size <= SMALL_BYTES] or x for x in found.values() if x]


def damage(
    number: int, seed: int, files: list[Path], by_reader: list[list[Path]], keep: Path, home: Connection
) -> None:
    """One process: its own cases, its own guide; what it saw goes home every few seconds."""
    sys.stdin.close()
    confined()
    guide = Guide()
    guide.watch()
    fuzz = Fuzz(seed, files, keep, guide)
    fuzz.by_reader, fuzz.shares = by_reader, {k: v for k, v in SHARES.items() if k != "mcp" or has_mcp()}
    folder = Path(tempfile.mkdtemp(prefix=f"fuzz{number}-"))
    home.send(("folder", str(folder)))
    told = began = time.monotonic()
    case = 0
    while not home.poll():
        fuzz.case(case, folder)
        case += 1
        if time.monotonic() - told > REPORT_S:
            told = time.monotonic()
            fuzz.tally.seconds = told - began
            fuzz.tally.peak_bytes = peak_bytes()
            home.send(("tally", fuzz.tally))
    fuzz.tally.seconds, fuzz.tally.peak_bytes = time.monotonic() - began, peak_bytes()
    home.send(("tally", fuzz.tally))
    home.send(("kept", sorted(guide.kept, key=lambda x: len(x[1]))[:MOST_KEPT]))
    home.send(("done", None))
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def worked_s(process: BaseProcess) -> float:
    """The processor's time that it has had; the wall's clock where there is no list of it."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Worker:
    """A process as seen from outside."""

    process: BaseProcess
    home: Connection
    heard: float  # its own work until its last word
    heard_at: float = field(default_factory=time.monotonic)
    folder: Path | None = None
    tally: Tally = field(default_factory=Tally)
    done: bool = False

    def silent(self) -> bool:
        """Nothing was heard for longer than a case can work, or for so long that not even a crowd explains it."""
        waited = time.monotonic() - self.heard_at
        return worked_s(self.process) - self.heard > SILENT_S or waited > CROWD * SILENT_S


@dataclass
class Run:
    """All processes of one run."""

    seed: int
    files: list[Path]
    by_reader: list[list[Path]]
    keep: Path
    tally: Tally = field(default_factory=Tally)
    kept: list[tuple[str, bytes]] = field(default_factory=list)
    started: int = 0

    def start(self) -> Worker:
        here, there = multiprocessing.Pipe()
        context: Any = multiprocessing.get_context("fork")
        number, self.started = self.started, self.started + 1
        process = context.Process(
            target=damage, args=(number, self.seed * 1000 + number, self.files, self.by_reader, self.keep, there)
        )
        process.start()
        there.close()
        return Worker(process, here, worked_s(process))

    def hear(self, worker: Worker) -> None:
        """All that it has said so far."""
        try:
            while worker.home.poll():
                what, value = worker.home.recv()
                worker.heard, worker.heard_at = worked_s(worker.process), time.monotonic()
                if what == "folder":
                    worker.folder = Path(value)
                elif what == "tally":
                    worker.tally = value
                elif what == "kept":
                    self.kept += value
                else:
                    worker.done = True
        except (EOFError, OSError):
            pass

    def end(self, worker: Worker, kind: str, what: str) -> None:
        """Gives it up, with the file that it had in hand."""
        worker.process.kill()
        worker.process.join()
        held = [p for p in worker.folder.iterdir() if p.is_file()] if worker.folder and worker.folder.is_dir() else []
        first = held[0] if held else None
        Told(
            worker.tally.cases, first.name if first else "?", "?", "?", first.read_bytes() if first else b"", worker.tally,
            self.keep,
        ).fails(kind, f"{what} with {first.name if first else 'nothing'}")  # fmt: skip
        self.tally.add(worker.tally)

    def go(self, processes: int, seconds: float) -> None:
        """Until the time is over; whoever is lost is replaced."""
        began = time.monotonic()
        gc.freeze()  # what every process inherits is looked through by none
        workers = [self.start() for _ in range(processes)]
        written = began
        while time.monotonic() - began < seconds:
            time.sleep(0.5)
            if time.monotonic() - written > WRITTEN_S:
                written = time.monotonic()
                self.so_far(workers, written - began)
            for place, worker in enumerate(workers):
                self.hear(worker)
                if not worker.process.is_alive():
                    self.end(worker, "escapes", f"a process died ({worker.process.exitcode})")
                    workers[place] = self.start()
                elif worker.silent():
                    self.end(worker, "over_time", "a process that nothing interrupts")
                    workers[place] = self.start()
        for worker in workers:
            worker.home.send("enough")
        self.gather(workers)
        self.tally.seconds = time.monotonic() - began

    def so_far(self, workers: list[Worker], seconds: float) -> None:
        """What all have seen until now, beside the failures."""
        sum_ = Tally()
        for tally in (self.tally, *(w.tally for w in workers)):
            sum_.add(tally)
        sum_.seconds = seconds
        (self.keep.parent / "so_far.json").write_text(json.dumps(sum_.as_dict(), indent=1) + "\n")

    def gather(self, workers: list[Worker]) -> None:
        """The last words of each."""
        deadline = time.monotonic() + CROWD * LIMIT_S
        while any(not w.done for w in workers) and time.monotonic() < deadline:
            for worker in workers:
                self.hear(worker)
            time.sleep(0.1)
        for worker in workers:
            worker.process.kill()
            worker.process.join()
            self.tally.add(worker.tally)


@dataclass
class Guided:
    """A process under libFuzzer, which writes its own report."""

    process: subprocess.Popen[bytes]
    out: Path

    def ended(self) -> Tally:
        """What it saw; one that did not end by itself had a last input that nothing interrupts."""
        tally = Tally()
        try:
            code = self.process.wait(4 * LIMIT_S)  # what one input may last
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = None
        if (self.out / "report.json").exists():
            tally = Tally.read(json.loads((self.out / "report.json").read_text()))
        if code != 0:
            kind = "escapes" if code else "over_time"
            Told(tally.cases, "?", "libFuzzer", "?", b"", tally, None).fails(
                kind, f"a process under libFuzzer ended with {code}"
            )
        return tally


def guided(count: int, seconds: float, seed: int, more: list[str], keep: Path) -> list[Guided]:
    """Processes under libFuzzer; none where atheris is not installed."""
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed: the guide of our own alone", flush=True)
        return []
    found = []
    for number in range(count):
        out = keep.parent / f"guided-{number}"
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.guided",
            "--seconds",
            str(int(seconds)),
            "--seed",
            str(seed * 1000 + 900 + number),
        ]
        quiet = (keep.parent / f"guided-{number}.log").open("wb")
        process = subprocess.Popen(
            [*command, "--out", str(out), "--keep", str(keep), "--seeds", *more], stdout=quiet, stderr=quiet
        )
        found.append(Guided(process, out))
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument(
        "--guided", type=int, default=2, help="of the processes under libFuzzer, where atheris is installed"
    )
    parser.add_argument(
        "--whole", type=float, default=SHARES["whole"], help="share of the cases that go through the whole diagnosis"
    )
    parser.add_argument("--only", help="one target alone: page, mcp, command, ...")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", nargs="*", default=[], help="more folders of files to damage")
    parser.add_argument("--out", type=Path, default=Path("fuzz"), help="folder for report.json and the failures")
    chosen = parser.parse_args()
    SHARES["whole"] = chosen.whole
    if chosen.only:
        SHARES.update({k: float(k == chosen.only) for k in SHARES})
    keep = chosen.out / "failures"
    keep.mkdir(parents=True, exist_ok=True)
    every = seeds(chosen.seeds)
    files = [f for f in every if f.stat().st_size <= SMALL_BYTES]
    run = Run(chosen.seed, files, seeds_by_reader(every), keep)
    others = guided(chosen.guided, chosen.seconds, chosen.seed, chosen.seeds, keep)
    run.go(chosen.processes - len(others), chosen.seconds)
    by_libfuzzer = Tally()
    for other in others:
        by_libfuzzer.add(other.ended())
    run.tally.add(by_libfuzzer)
    text = json.dumps(
        {
            "python": sys.version.split()[0], "processes": chosen.processes, "of_them_libfuzzer": len(others), "seed": chosen.seed,
            "seeds": len(files), "by_libfuzzer": by_libfuzzer.cases, "cpu_s": round(sum(os.times()[:4]), 1), **run.tally.as_dict(),
        },
        indent=1,
    )  # fmt: skip
    (chosen.out / "report.json").write_text(text + "\n")
    (chosen.out / "so_far.json").unlink(missing_ok=True)
    with tarfile.open(chosen.out / "failures.tar.gz", "w:gz") as packed:
        packed.add(keep, "failures")
    shutil.rmtree(keep)
    new = chosen.out / "kept"
    new.mkdir(exist_ok=True)
    for number, (name, data) in enumerate(run.kept):
        (new / f"{number:04d}-{''.join(c if c.isalnum() or c in '._-' else '_' for c in name)[-60:]}").write_bytes(data)
    with tarfile.open(chosen.out / "kept.tar.gz", "w:gz") as packed:
        packed.add(new, "kept")
    shutil.rmtree(new)
    print(text)
    raise SystemExit(1 if run.tally.failures else 0)


if __name__ == "__main__":
    main()
