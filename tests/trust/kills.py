"""Kills of recording, caching, trying and drilling at random moments: what is on disk afterwards is whole but for its last line.

python -m tests.trust.kills --times 100
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_UNWRITTEN = 1500  # steps of less than a millisecond: the recorder writes twice a second
RECORDING = """
import stallwise, sys, time
stallwise.start(sys.argv[1])
print("begun", flush=True)
for n in range(10**9):
    with stallwise.span("data"):
        time.sleep(0.0005)
    stallwise.step()
    if n % 50 == 0:
        print(n, flush=True)
"""
CACHING = """
import sys
from pathlib import Path
from stallwise.doctor import cache
from stallwise.doctor.reading import ReadingPlan, reading_of
from stallwise.evidence.artifact import Artifact
cache.WORTH_KEEPING_BYTES = 0
for n in range(10**9):
    path = Path(sys.argv[1], f"{n % 20}.log")
    path.write_text("".join(f"step {i} loss 2.{n} step_time 0.1{i}\\n" for i in range(40)))
    reading_of(Artifact(str(path), path), ReadingPlan())
    if n == 0:
        print("begun", flush=True)
"""
TRYING = """
import time, torch
from torch import nn
torch.set_num_threads(1)
class Slow(torch.utils.data.Dataset):
    def __len__(self): return 10**6
    def __getitem__(self, at):
        time.sleep(0.0005)
        return torch.full((8,), 0.5), at % 2
model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in torch.utils.data.DataLoader(Slow(), batch_size=2):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""
TRIALS = "nothing,no-collector,last-batch-again,foreach-optimizer,tf32"
TRIALS_SLOWER = 12.0  # than what the others write: a moment in the midst of them is that much later
DRILLING = """
import sys
from pathlib import Path
from stallwise.drill.journal import Event, Journal
from stallwise.drill.progress import Progress
journal, progress = Journal(Path(sys.argv[1], "round.jsonl")), Progress(Path(sys.argv[1], "drill.sqlite"))
print("begun", flush=True)
for n in range(10**9):
    journal.append(Event("ask", "x" * (n % 3000), float(n)))
    progress.review(f"card {n % 50}", "memory", "pass", 1.0)
    print(n, flush=True)
"""


def killed(program: str, folder: Path, after_s: float) -> int:
    """Runs it, kills it, and says the last number that it told."""
    told = folder / "told.txt"
    with told.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(folder)], stdout=out, stderr=subprocess.DEVNULL,
            env={**os.environ, "STALLWISE_CACHE": str(folder / "cache"), "STALLWISE_DEBUG": ""},
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while "begun" not in told.read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
    numbers = [int(x) for x in told.read_text().split() if x.isdigit()]
    return numbers[-1] if numbers else -1


def recording(folder: Path, after_s: float) -> str:
    """Every line but the last is whole."""
    told = killed(RECORDING, folder, after_s)
    steps = sum(f.read_bytes().count(b'"k":"step"') for f in folder.glob("*.jsonl"))
    if steps < told - MOST_UNWRITTEN:
        return f"{told - steps} steps lost"
    return broken_lines(folder)


def broken_lines(folder: Path) -> str:
    """A line that is no JSON, other than the last: that one was being written."""
    for file in folder.glob("*.jsonl"):
        for line in file.read_bytes().split(b"\n")[:-1]:
            try:
                json.loads(line)
            except ValueError:
                return f"{file.name}: a broken line before the last: {line[:60]!r}"
    return ""


def trying(folder: Path, after_s: float) -> str:
    """A real job under trial: the job alone is killed, or everything; every result that could be read before is still there."""
    (folder / "job.py").write_text(TRYING)
    out, held = folder / "out", folder / "out" / "trials.json"
    arguments = ["try", "-o", str(out), "--only", TRIALS, "--seconds", "60", "--repeat", "3", "--no-trace", "--"]
    with (folder / "told.txt").open("w") as told:
        process = subprocess.Popen(
            [sys.executable, "-m", "stallwise", *arguments, sys.executable, str(folder / "job.py")],
            stdout=told, stderr=subprocess.STDOUT, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )  # fmt: skip
        seen, ends = 0, time.monotonic() + 60
        begun = False
        while process.poll() is None and time.monotonic() < ends:
            time.sleep(0.005)
            if held.is_file():
                try:
                    seen = max(seen, len(json.loads(held.read_text())["trials"]))
                except ValueError:
                    return "a reader found half a file"
                if not begun:
                    begun, ends = True, time.monotonic() + TRIALS_SLOWER * after_s
        alone = children(process.pid) if int(after_s * 1000) % 2 else []
        for pid in alone:
            os.kill(pid, signal.SIGKILL)
        if not alone and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
    if not begun:
        return f"nothing was tried: {(folder / 'told.txt').read_text()[-200:]!r}"
    kept = len(json.loads(held.read_text())["trials"])
    if kept < seen:
        return f"{seen - kept} of {seen} results lost"
    if alone and "internal error" in (folder / "told.txt").read_text():
        return "the death of the job became internal error"
    return broken_lines(out)


def children(pid: int) -> list[int]:
    """The processes that this one started, by the kernel's own list; none where there is no such list."""
    try:
        return [int(x) for x in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def caching(folder: Path, after_s: float) -> str:
    """Every entry can be read."""
    from stallwise.doctor.cache_format import decoded

    killed(CACHING, folder, after_s)
    if not list((folder / "cache").glob("[!.]*")):
        return "nothing was kept"
    for file in (folder / "cache").glob("[!.]*"):
        try:
            decoded(file.read_bytes())
        except Exception as error:
            return f"a broken entry: {error!r}"
    return ""


def drilling(folder: Path, after_s: float) -> str:
    """All that was booked is there, and the next event joins it."""
    from stallwise.drill.journal import Event, Journal
    from stallwise.drill.progress import Progress

    last = killed(DRILLING, folder, after_s)
    journal = Journal(folder / "round.jsonl")
    before = len(journal.events())
    if before < last + 1:
        return f"{last + 1 - before} events lost"
    journal.append(Event("pause", "", 0.0))
    if len(journal.events()) not in (before, before + 1) or journal.events()[-1].kind != "pause":
        return "the next event is lost"
    with Progress(folder / "drill.sqlite") as progress:
        booked = len(progress.export()["reviews"])
    return "" if booked >= last + 1 else f"{last + 1 - booked} reviews lost"


KINDS = {"recording": recording, "caching": caching, "drilling": drilling}
if importlib.util.find_spec("torch") is not None:
    KINDS["trying"] = trying


def kill(times: int, seed: int) -> list[str]:
    """What was lost, one line each."""
    r = random.Random(seed)
    losses: list[str] = []
    for number in range(times):
        kind = list(KINDS)[number % len(KINDS)]
        with tempfile.TemporaryDirectory() as folder:
            problem = KINDS[kind](Path(folder), r.expovariate(3.0))
        if problem:
            losses.append(f"{kind} {number}: {problem}")
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    found = kill(chosen.times, chosen.seed)
    print("\n".join(found) or f"nothing was lost in {chosen.times} kills")
    raise SystemExit(1 if found else 0)
