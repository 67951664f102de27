"""The steps of a program: so many by hand with their time printed, or as many as the seconds allow where trials are made in it.

CHANGE is what its author would have changed (one name, or nothing); TINY makes it small; STEPS times so many after a warm-up.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Iterator
from itertools import count
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


def turns(gate: str) -> Iterator[int]:
    """Everything is compiled and warm: this process is timed when it is its turn, the others rest meanwhile."""
    drain()
    Path(f"{gate}.ready").touch()
    for turn in count():
        while not Path(f"{gate}.go{turn}").exists():
            if Path(f"{gate}.end").exists():
                return
            time.sleep(0.005)
        yield turn


def steps() -> Iterator[int]:
    """Numbers of steps; the time of a step is printed after the last."""
    timed, seconds = int(os.environ.get("STEPS", "0")), float(os.environ.get("SECONDS", "60"))
    if not timed:
        until_s, number = time.monotonic() + seconds, 0
        while time.monotonic() < until_s:
            yield number
            number += 1
        return
    warm = max(10, timed // 3)
    yield from range(warm)
    gate = os.environ.get("GATE", "")
    took = []
    for turn in turns(gate) if gate else range(CHUNKS):
        if gate:
            yield from range(warm)  # batches made in advance are used up, clocks and caches are those of a busy device
        drain()
        began = time.perf_counter()
        yield from range(timed)
        drain()
        took.append((time.perf_counter() - began) / timed)
        if gate:
            Path(f"{gate}.done{turn}").touch()
    print(json.dumps({"change": CHANGE, "step_s": statistics.median(took), "turns_s": took}), flush=True)
