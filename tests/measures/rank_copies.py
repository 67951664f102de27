"""Many ranks made from one trace, with a delay planted on some of them as physics would have it.

The late rank's own time is stretched by D(t); every other rank leaves each collective when the late one has come and
the bytes have moved, so its later events move by D at that collective. With no delay all copies are equal and only
their clocks differ.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.readers.trace_files import document, event

COLLECTIVE = "nccl"
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def plain_training(steps: int = 6, kernels: int = 12, first_step: int = 4) -> dict[str, Any]:
    """A small step: forward and backward kernels from one thread, two overlapping reductions, an optimizer kernel."""
    rows, clock, ident = [], 0.0, 1
    for number in range(first_step, first_step + steps):
        begin = clock
        rows.append(event(LOADER, "user_annotation", begin + 2, 5))
        at = begin + 20
        for n in range(kernels):
            rows.append(event("cudaLaunchKernel", "cuda_runtime", at, 6, correlation=ident))
            rows.append(event(f"gemm_{n % 4}", "kernel", at + 10, 90, pid=0, tid=7, correlation=ident))
            ident, at = ident + 1, at + 100
        for size in (4_000_000, 2_000_000):
            rows.append(event("nccl:all_reduce", "user_annotation", at, 9))
            rows.append(event("cudaLaunchKernel", "cuda_runtime", at + 1, 6, correlation=ident))
            args = {"Collective name": "allreduce", "In msg nelems": size, "Out msg nelems": size, "dtype": "Float",
                    "Process Group Name": "0", "Group size": 8}  # fmt: skip
            rows.append(
                event("ncclDevKernel_AllReduce_Sum", "kernel", at + 12, 60, pid=0, tid=20, correlation=ident, **args)
            )
            ident, at = ident + 1, at + 80
        rows.append(event("cudaLaunchKernel", "cuda_runtime", at, 6, correlation=ident))
        rows.append(event("adam", "kernel", at + 10, 40, pid=0, tid=7, correlation=ident))
        ident, at = ident + 1, at + 70
        rows.append(event(f"ProfilerStep#{number}", "user_annotation", begin, at - begin))
        clock = at
    return document(rows, deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85e9}])


def copies(
    doc: dict[str, Any],
    ranks: int,
    *,
    late: tuple[int, ...] = (),
    kind: str = "",
    delay_us: float = 0.0,
    slowdown: float = 1.0,
    offset_us: float = 37.0,
    drift: float = 0.0,
    since_step: int | None = None,
) -> Iterator[dict[str, Any]]:
    """One document a rank. `kind` is "input", "host", "gc" or "clocks"."""
    events = [e for e in doc["traceEvents"] if e.get("ph") == "X"]
    others = [e for e in doc["traceEvents"] if e.get("ph") == "M"]
    start = np.array([float(e["ts"]) for e in events])
    delays = _delays(events, kind, delay_us, slowdown, since_step)
    own_shift = _total(delays, start)
    sync = np.array(sorted(float(e["ts"]) for e in events if _is_collective(e)))
    at_sync = _total(delays, sync)

    def peers(times: np.ndarray) -> np.ndarray:
        place = np.searchsorted(sync, times, side="left") - 1  # the last collective that began before
        return np.where(place >= 0, at_sync[np.maximum(place, 0)], 0.0)

    ends = start + np.array([float(e.get("dur") or 0.0) for e in events])
    peer_shift = peers(start)
    own_stretch, peer_stretch = _total(delays, ends) - own_shift, peers(ends) - peer_shift
    base = start.min()
    for rank in range(ranks):
        mine = rank in late
        rows = []
        for at, e in enumerate(events):
            moved = dict(e)
            shift = own_shift[at] if mine else peer_shift[at]
            moved["ts"] = float(e["ts"]) + shift
            if _is_collective(e) and not mine:
                here = at_sync[np.searchsorted(sync, float(e["ts"]))]
                moved["dur"] = float(e["dur"]) + here - shift
            elif mine and kind == "clocks" and e.get("cat") == "kernel" and not _is_collective(e):
                moved["dur"] = float(e["dur"]) * slowdown
            elif e.get("cat") == "user_annotation":  # a range around the delay holds it
                moved["dur"] = float(e["dur"]) + (own_stretch[at] if mine else peer_stretch[at])
            rows.append(moved)
        if mine:
            rows += _planted(delays, kind, events)
        for e in rows:
            e["ts"] = e["ts"] + offset_us * rank + drift * rank * (e["ts"] - base)
        yield {
            **doc,
            "distributedInfo": {"rank": rank, "world_size": ranks, "backend": "nccl"},
            "traceEvents": others + rows,
        }


def _is_collective(e: dict[str, Any]) -> bool:
    return e.get("cat") == "kernel" and COLLECTIVE in str(e.get("name")).lower()


def _delays(
    events: list[dict[str, Any]], kind: str, delay_us: float, slowdown: float, since_step: int | None
) -> list[tuple[float, float]]:
    """Where and by how much the late rank loses time."""
    if kind == "clocks":
        work = [e for e in events if e.get("cat") == "kernel" and not _is_collective(e)]
        return sorted((float(e["ts"]) + float(e["dur"]), float(e["dur"]) * (slowdown - 1.0)) for e in work)
    marks = [e for e in events if str(e.get("name")).startswith("ProfilerStep#")]
    chosen = [e for e in marks if since_step is None or int(e["name"].split("#")[1]) >= since_step]
    return sorted((float(e["ts"]) + 1.0, delay_us) for e in chosen) if kind else []


def _total(delays: list[tuple[float, float]], times: np.ndarray) -> np.ndarray:
    if not delays:
        return np.zeros(len(times))
    at = np.array([d[0] for d in delays])
    reach = np.concatenate(([0.0], np.cumsum([d[1] for d in delays])))
    return reach[np.searchsorted(at, times, side="left")]


def _planted(delays: list[tuple[float, float]], kind: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    name = {"input": LOADER, "gc": "python_gc"}.get(kind)
    if name is None:
        return []
    host = next(e for e in events if str(e.get("name")).startswith("ProfilerStep#"))
    rows, before = [], 0.0
    for at, length in delays:
        rows.append(
            {"ph": "X", "cat": "user_annotation", "name": name, "pid": host["pid"], "tid": host["tid"],
             "ts": at + before, "dur": length, "args": {}}
        )  # fmt: skip
        before += length
    return rows


def write_copies(folder: Path, doc: dict[str, Any], ranks: int, *, packed: bool = True, **how: Any) -> Path:
    """As files rank-0.json.gz and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank, made in enumerate(copies(doc, ranks, **how)):
        content = json.dumps(made).encode()
        name = f"rank-{rank}.json" + (".gz" if packed else "")
        (folder / name).write_bytes(gzip.compress(content, 1) if packed else content)
    return folder
