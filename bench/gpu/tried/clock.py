"""The steps of a program: so many by hand with their time printed, or as many as the seconds allow where trials are made in it.

CHANGE is what its author would have changed (one name, or nothing); TINY makes it small; STEPS times so many after a warm-up.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import torch

CHANGE = os.environ.get("CHANGE", "")
TINY = bool(os.environ.get("TINY"))
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CHUNKS = 8


def size(full: int, tiny: int) -> int:
    """One or the other."""
    return tiny if TINY else full


def drain() -> None:
    """The device has done all it was given."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def wait_for_turn(gate: str) -> None:
    """Everything is compiled and warm: one process at a time is timed, the others rest."""
    drain()
    Path(f"{gate}.ready").touch()
    while not Path(f"{gate}.go").exists():
        time.sleep(0.01)


def steps() -> Iterator[int]:
    """Numbers of steps; the time of a step is printed after the last."""
    timed, seconds = int(os.environ.get("STEPS", "0")), float(os.environ.get("SECONDS", "60"))
    if not timed:
        until_s, number = time.monotonic() + seconds, 0
        while time.monotonic() < until_s:
            yield number
            number += 1
        return
    warm, each = max(6, timed // 3), max(1, timed // CHUNKS)
    yield from range(warm)
    if gate := os.environ.get("GATE"):
        wait_for_turn(gate)
        yield from range(warm)  # clocks and caches of a device that was idle
    took = []
    for chunk in range(CHUNKS):
        drain()
        began = time.perf_counter()
        yield from range(warm + chunk * each, warm + (chunk + 1) * each)
        drain()
        took.append((time.perf_counter() - began) / each)
    print(json.dumps({"change": CHANGE, "step_s": statistics.median(took), "chunks_s": took}), flush=True)
