# ruff: noqa: E501
"""Kernels, told by Nsight Compute's counters (their faults stand in kernel_faults.tsv), by machine code and by autotuners."""

from __future__ import annotations

import json
from functools import partial
from itertools import product

from stallwise.drill import rows
from stallwise.drill.artifacts.counters import raw_csv
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import exhibit
from stallwise.drill.scenarios import Drawn, drawn, planted, plots
from stallwise.drill.scenarios._classic_exhibits import slow_gemm, slow_triton

CHIPS = {"A100": ("8.0", 108), "H100": ("9.0", 132), "H200": ("9.0", 132)}
FAULTS = {row["cause"]: row for row in rows("scenarios/kernel_faults.tsv")}
NAMES = ("k0(float *, int)", "void step<256>(float const *, float *, int)", "void pass2(float *, float const *, int)", "apply(float *, int, int)")  # fmt: skip
WITHOUT_NOISE = ("grid", "sms", "block", "registers", "threads")
AT_A_CEILING = ("compute-roof", "dram-bandwidth-bound")  # nothing to repair: neither a second fault nor with one
SECOND_SHARE = 0.15  # a second kernel with a fault of its own, and little time
# A kernel in the middle of everything; stalls are shares of the 20 cycles between two instructions of a warp.
BASE = {
    "sm": 30, "memory": 25, "dram": 20, "l1": 20, "l2": 20, "issue": 20, "occupancy": 60, "occupancy_limit": 75, "threads": 32, "tensor": 0,
    "fma": 5, "fp64": 0, "alu": 10, "instructions": 1e7, "spills": 0, "cycles": 1e6, "active": 9.9e5, "most_active": 1e6, "latency": 20.0,
    "registers": 40, "block": 256, "long_scoreboard": 4.0, "mio": 0.5, "barrier": 0.2, "excess": 0, "sectors": 1e6, "conflict_excess": 0,
    "wavefronts": 1e6, "atomics": 0, "slice_mean": 9.5e5, "slice_most": 1e6,
}  # fmt: skip


def _values(rng: Rng, cause: str, sms: int, time_ms: float) -> dict[str, float]:
    changed = (pair.split(" = ") for pair in FAULTS[cause]["counters"].split("; "))
    base = BASE | {"time_ms": time_ms, "sms": sms, "grid": sms * 74} | {word: float(value) for word, value in changed}
    noisy = {w: v if w in WITHOUT_NOISE else rng.near(v, 0.01) for w, v in base.items()}
    if cause == "tail-wave":  # one block a multiprocessor, and one block too many
        limits = dict.fromkeys(("limit_blocks", "limit_registers", "limit_shared", "limit_warps"), 1)
        return {**noisy, "grid": sms + 1, "waves": (sms + 1) / sms, **limits}
    return {**noisy, "waves": base["grid"] / sms / 4}


def _counters(rng: Rng, cause: str) -> Drawn:
    chip, time_ms, names = rng.pick(*CHIPS), rng.between(0.4, 4), rng.some(NAMES, 2)
    capability, sms = CHIPS[chip]
    kernels = {names[0]: _values(rng, cause, sms, time_ms)}
    others = [c for c in FAULTS if c != cause and c not in AT_A_CEILING]
    second = rng.pick(*others) if rng.chance(0.4) and cause not in AT_A_CEILING else ""
    if second:
        kernels[names[1]] = _values(rng, second, sms, time_ms * SECOND_SHARE)
    settles = [kernels[names[0]][word] for word in FAULTS[cause]["settles"].split(" / ")]
    share = plots()[cause]["unit"] == "share"
    value = settles[0] / (settles[1] if settles[1:] else 100 if share else 1)
    counters = exhibit("ncu", "ncu_raw.csv", raw_csv(capability, kernels))
    return drawn(value, counters, also=(second,) if second else (), chip=chip)


for _cause in FAULTS:
    planted(_cause, _cause)(partial(_counters, cause=_cause))


@planted("tensor-cores-starved")
def starved(rng: Rng) -> Drawn:
    size, gpu, rate, library, tensor = (
        rng.pick(4096, 8192),
        rng.pick("H100", "H200"),
        rng.whole(140, 240),
        rng.whole(600, 680),
        rng.whole(10, 22),
    )
    files = slow_gemm(rng, size, rate, library, tensor)
    return drawn(tensor / 100, *files, size=size, gpu=gpu, rate=rate, library=library)


@planted("autotune-space-too-small")
def two_configurations(rng: Rng) -> Drawn:
    speed, tiles = rng.between(0.55, 0.85), rng.some(((128, 128), (64, 64), (128, 64)), rng.pick(2, 3))
    return drawn(len(tiles), *slow_triton(rng, [(*tile, 32, 4, 2) for tile in tiles], speed), speed=speed)


@planted("fusion-not-worth-it")
def loses_to_the_library(rng: Rng) -> Drawn:
    """The results of a wide sweep; the library path beside them."""
    library_ms, wide = rng.between(0.3, 0.6), rng.between(0.82, 0.93)
    axes = {
        "BLOCK_M": (64, 128, 256),
        "BLOCK_N": (64, 128, 256),
        "BLOCK_K": (32, 64, 128),
        "num_warps": (4, 8),
        "num_stages": (3, 4, 5),
    }
    tried = rng.some([dict(zip(axes, values, strict=True)) for values in product(*axes.values())], rng.whole(120, 150))
    times = [library_ms / wide * (1.0 if n == 0 else rng.between(1.02, 2.4)) for n in range(len(tried))]
    results = rng.some([config | {"ms": round(ms, 4)} for config, ms in zip(tried, times, strict=True)], len(tried))
    sweep = {
        "kernel": "fused_norm_linear",
        "shape": [8192, 4096, 4096],
        "library_ms": round(library_ms, 4),
        "results": results,
    }
    bench = f"what,ms\nrms_norm alone,{0.05 * library_ms:.4f}\nlinear alone (library),{0.95 * library_ms:.4f}\n"
    return drawn(
        wide,
        exhibit("autotune", "sweep.json", json.dumps(sweep)),
        exhibit("bench", "bench.csv", bench, False),
        wide=wide,
    )
