"""Is the job the same after the recorder's windows as before them?

    python bench/gpu/recorder_after.py [--rounds 2]

The launch-bound step of bench/gpu/overhead.py, which feels every microsecond of a launch, in processes of their own: without a
recorder, with one that opens no window, with windows after which CUPTI stays (TEARDOWN_CUPTI=0), and with windows after which
it leaves. One row a process: medians before the first window, between the two and after them, on the loop's own clock.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

STEPS = 150
WAYS = ("plain", "no window", "stays", "leaves")


def child(way: str) -> None:
    import torch

    sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
    from recorder_overhead import loop

    from stallwise.readers.records.rank_record import parse
    from stallwise.recorder import verbs
    from stallwise.recorder.profile_window import ProfileWindow

    folder = tempfile.mkdtemp()
    if way == "stays":
        os.environ["TEARDOWN_CUPTI"] = "0"
    if way != "plain":
        verbs.start(folder)
        recording = verbs.recording()
        if way in ("stays", "leaves") and recording is not None:
            ProfileWindow(recording)
    step, ends = loop("launch-bound"), []
    for _ in range(STEPS):
        step()
        ends.append(time.perf_counter())
    torch.cuda.synchronize()
    verbs.stop()
    own_ms = [(b - a) * 1e3 for a, b in zip(ends, ends[1:], strict=False)]
    row: dict[str, object] = {"way": way}
    first, last = 60, 60
    if way != "plain":
        record = parse(Path(folder, "rank-00000.jsonl").read_text().splitlines())
        row["windows"] = [(w.kind, w.first, w.last, w.start_s, w.stop_s) for w in record.windows]
        if record.windows:
            first, last = record.windows[0].first - 1, record.windows[-1].last + 2
            row["between_ms"] = middle(own_ms[record.windows[0].last + 2 : record.windows[-1].first - 2])
        row["flags"] = sorted({str(w) for w in record.window})
    row |= {"before_ms": middle(own_ms[6 : first - 1]), "after_ms": middle(own_ms[last:])}
    row["after_quarters_ms"] = [middle(own_ms[last + i * 20 : last + (i + 1) * 20]) for i in range(4)]
    print(json.dumps(row), flush=True)


def middle(values: list[float]) -> float | None:
    return round(statistics.median(values), 3) if values else None


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=2)
    chosen = options.parse_args()
    import torch  # once: the children are forked, each before it touches the device

    assert not torch.cuda.is_initialized()
    for turn in range(chosen.rounds):
        for way in WAYS if turn % 2 == 0 else WAYS[::-1]:
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    child(way)
                    code = 0
                finally:
                    sys.stdout.flush()
                    os._exit(code)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if status:
                print(json.dumps({"way": way, "exit": status}), flush=True)


if __name__ == "__main__":
    main()
