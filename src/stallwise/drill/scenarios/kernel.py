# ruff: noqa: E501
"""Kernels, told by Nsight Compute's counters, by stated summaries and by autotuners."""

from __future__ import annotations

from collections.abc import Callable

from stallwise.drill.artifacts.counters import raw_csv
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import EXACT, READ_OFF, WORKED_OUT, Decisive, Plot, exhibit
from stallwise.drill.scenarios._classic_exhibits import slow_gemm, slow_triton
from stallwise.drill.scenarios._planted import planted
from stallwise.units import Unit

CHIPS = {"A100": ("8.0", 108), "H100": ("9.0", 132), "H200": ("9.0", 132)}
LATENCY = 20.0  # cycles between two instructions of a warp: stalls below are shares of it


# What each fault does to the counters of a kernel that is otherwise in the middle of everything.
FAULTS: dict[str, dict[str, float]] = {
    "uncoalesced-access": {"dram": 88, "l2": 70, "excess": 7.5e5, "long_scoreboard": 18, "sm": 8, "issue": 8},
    "register-spills": {
        "spills": 3e6,
        "l1": 70,
        "registers": 255,
        "occupancy": 12,
        "occupancy_limit": 12.5,
        "long_scoreboard": 14,
    },
    "shared-bank-conflicts": {"conflict_excess": 8.5e5, "l1": 95, "mio": 12, "dram": 5, "long_scoreboard": 1},
    "warp-divergence": {"threads": 9, "issue": 85, "sm": 85, "alu": 50, "long_scoreboard": 2},
    "barrier-stalls": {"barrier": 12, "long_scoreboard": 2, "issue": 30, "block": 1024},
    "latency-bound-low-occupancy": {
        "occupancy": 6,
        "occupancy_limit": 6.25,
        "long_scoreboard": 19,
        "issue": 2,
        "sm": 2,
        "dram": 8,
        "memory": 9,
    },
    "grid-too-small": {"grid": 16, "tensor": 8, "active": 1.4e5, "occupancy": 12},
    "tail-wave": {
        "grid": 133,
        "block": 1024,
        "active": 5.1e5,
        "most_active": 1e6,
        "occupancy": 45,
        "occupancy_limit": 50,
    },
    "block-imbalance": {"active": 4e5, "most_active": 9.6e5},
    "fp64-in-hot-path": {"fp64": 94, "sm": 94, "issue": 7, "long_scoreboard": 1},
    "compute-roof": {
        "tensor": 93,
        "sm": 93,
        "issue": 35,
        "dram": 30,
        "memory": 35,
        "long_scoreboard": 1,
        "occupancy": 25,
        "occupancy_limit": 25,
    },
    "dram-bandwidth-bound": {
        "dram": 92,
        "memory": 92,
        "l2": 60,
        "l1": 40,
        "sm": 12,
        "issue": 10,
        "long_scoreboard": 15,
    },
    "atomic-contention": {
        "atomics": 1e6,
        "slice_mean": 1e5,
        "slice_most": 1e6,
        "long_scoreboard": 16,
        "dram": 1,
        "l1": 2,
        "l2": 3,
        "issue": 1,
        "sm": 4,
        "memory": 4,
    },
}
# What settles each of them, read off or divided from the counters.
NUMBERS: dict[str, tuple[str, Callable[[dict[str, float]], float], Unit, float]] = {
    "uncoalesced-access": (
        "Which share of the sectors moved was not needed?",
        lambda v: v["excess"] / v["sectors"],
        Unit.SHARE,
        READ_OFF,
    ),
    "register-spills": ("How many requests went to local memory?", lambda v: v["spills"], Unit.COUNT, READ_OFF),
    "shared-bank-conflicts": (
        "Which share of the shared-memory wavefronts is a repeat?",
        lambda v: v["conflict_excess"] / v["wavefronts"],
        Unit.SHARE,
        READ_OFF,
    ),
    "warp-divergence": (
        "How many lanes of a warp work in the mean instruction?",
        lambda v: v["threads"],
        Unit.COUNT,
        EXACT,
    ),
    "barrier-stalls": (
        "Which share of its time does a warp stand at the main stall?",
        lambda v: v["barrier"] / v["latency"],
        Unit.SHARE,
        WORKED_OUT,
    ),
    "latency-bound-low-occupancy": (
        "Which share of the possible warps is resident?",
        lambda v: v["occupancy"] / 100,
        Unit.SHARE,
        READ_OFF,
    ),
    "grid-too-small": ("How many blocks are launched?", lambda v: v["grid"], Unit.COUNT, EXACT),
    "tail-wave": ("How many blocks are launched?", lambda v: v["grid"], Unit.COUNT, EXACT),
    "block-imbalance": (
        "Which share of the busiest multiprocessor's time does a mean one work?",
        lambda v: v["active"] / v["most_active"],
        Unit.SHARE,
        READ_OFF,
    ),
    "fp64-in-hot-path": ("How busy is the busiest arithmetic pipe?", lambda v: v["fp64"] / 100, Unit.SHARE, READ_OFF),
    "compute-roof": ("How busy is the busiest arithmetic pipe?", lambda v: v["tensor"] / 100, Unit.SHARE, READ_OFF),
    "dram-bandwidth-bound": (
        "Which share of its peak does the memory reach?",
        lambda v: v["dram"] / 100,
        Unit.SHARE,
        READ_OFF,
    ),
    "atomic-contention": (
        "How many times the mean traffic has the busiest slice of L2?",
        lambda v: v["slice_most"] / v["slice_mean"],
        Unit.RATIO,
        READ_OFF,
    ),
}
NAMES = (
    "k0(float *, int)",
    "void step<256>(float const *, float *, int)",
    "void pass2(float *, float const *, int)",
    "apply(float *, int, int)",
)
WITHOUT_NOISE = ("grid", "sms", "block", "registers", "threads")
AT_A_CEILING = ("compute-roof", "dram-bandwidth-bound")
SECOND_SHARE = 0.15  # a second kernel with a fault of its own, and little time


def _values(rng: Rng, cause: str, sms: int, time_ms: float) -> dict[str, float]:
    base: dict[str, float] = {
        "time_ms": time_ms, "sm": 30, "memory": 25, "dram": 20, "l1": 20, "l2": 20, "issue": 20, "occupancy": 60,
        "occupancy_limit": 75, "grid": sms * 74, "sms": sms, "threads": 32, "tensor": 0, "fma": 5, "fp64": 0, "alu": 10,
        "instructions": 1e7, "spills": 0, "cycles": 1e6, "active": 9.9e5, "most_active": 1e6, "latency": LATENCY, "registers": 40,
        "block": 256, "long_scoreboard": 4.0, "mio": 0.5, "barrier": 0.2, "excess": 0, "sectors": 1e6, "conflict_excess": 0,
        "wavefronts": 1e6, "atomics": 0, "slice_mean": 9.5e5, "slice_most": 1e6,
    }  # fmt: skip
    base |= FAULTS[cause]
    noisy = {w: v if w in WITHOUT_NOISE else rng.near(v, 0.01) for w, v in base.items()}
    if cause == "tail-wave":  # one block a multiprocessor, and one block too many
        return {
            **noisy,
            "grid": sms + 1,
            "waves": (sms + 1) / sms,
            "limit_blocks": 1,
            "limit_registers": 1,
            "limit_shared": 1,
            "limit_warps": 1,
        }
    return {**noisy, "waves": base["grid"] / sms / 4}


def _counters(rng: Rng, cause: str, setup: str) -> Plot:
    chip = rng.pick(*CHIPS)
    capability, sms = CHIPS[chip]
    time_ms, names = rng.between(0.4, 4), rng.some(NAMES, 2)
    kernels = {names[0]: _values(rng, cause, sms, time_ms)}
    # What is at a roof has nothing to repair, so it is neither a second fault nor has one.
    second = (
        rng.pick(*(c for c in FAULTS if c != cause and c not in AT_A_CEILING))
        if rng.chance(0.4) and cause not in AT_A_CEILING
        else None
    )
    if second:
        kernels[names[1]] = _values(rng, second, sms, time_ms * SECOND_SHARE)
    text = raw_csv(capability, kernels)
    ask, value, unit, within = NUMBERS[cause]
    number = Decisive(ask, value(kernels[names[0]]), unit, within)
    also = (second,) if second else ()
    return Plot(setup.format(chip=chip), (exhibit("ncu", "ncu_raw.csv", text),), number, also)


@planted("uncoalesced-access")
def strided(rng: Rng) -> Plot:
    return _counters(
        rng,
        "uncoalesced-access",
        "A kernel that only reorders rows takes several times as long on a {chip} as a copy of the same bytes. Why?",
    )


@planted("register-spills")
def spills(rng: Rng) -> Plot:
    return _counters(
        rng,
        "register-spills",
        "After unrolling the inner loop further, a kernel on a {chip} became slower though it executes fewer branches. Why?",
    )


@planted("shared-bank-conflicts")
def conflicts(rng: Rng) -> Plot:
    return _counters(
        rng,
        "shared-bank-conflicts",
        "A transpose through shared memory is slower on a {chip} than the naive one. Global accesses are perfect. Why?",
    )


@planted("warp-divergence")
def divergence(rng: Rng) -> Plot:
    return _counters(
        rng,
        "warp-divergence",
        "A kernel over sparse rows keeps the issue slots of a {chip} busy and gets little done. Why?",
    )


@planted("barrier-stalls")
def barriers(rng: Rng) -> Plot:
    return _counters(
        rng, "barrier-stalls", "A block-wide reduction in a loop reaches a tenth of the bandwidth of a {chip}. Why?"
    )


@planted("latency-bound-low-occupancy")
def few_warps(rng: Rng) -> Plot:
    return _counters(
        rng,
        "latency-bound-low-occupancy",
        "A pointer-chasing kernel leaves compute and memory of a {chip} nearly idle. Why?",
    )


@planted("grid-too-small")
def small_grid(rng: Rng) -> Plot:
    return _counters(
        rng,
        "grid-too-small",
        "A product of a tall and a narrow matrix runs on a {chip} no faster than on a much smaller card. Why?",
    )


@planted("block-imbalance")
def ragged(rng: Rng) -> Plot:
    return _counters(
        rng,
        "block-imbalance",
        "A kernel with one block per document reaches a fraction of its rate on a {chip} when the lengths vary. Why?",
    )


@planted("fp64-in-hot-path")
def doubles(rng: Rng) -> Plot:
    return _counters(
        rng, "fp64-in-hot-path", "A float kernel on a {chip} became far slower when a constant was added. Why?"
    )


@planted("tail-wave")
def one_block_too_many(rng: Rng) -> Plot:
    return _counters(
        rng, "tail-wave", "Making the problem one percent larger made a kernel on a {chip} nearly twice as slow. Why?"
    )


@planted("atomic-contention")
def counters_collide(rng: Rng) -> Plot:
    return _counters(
        rng,
        "atomic-contention",
        "A histogram kernel on a {chip} is ten times slower on real data than on random data of the same size. Why?",
    )


@planted("tensor-cores-starved")
def starved(rng: Rng) -> Plot:
    size, gpu = rng.pick(4096, 8192), rng.pick("H100", "H200")
    rate, library, tensor = rng.whole(140, 240), rng.whole(600, 680), rng.whole(10, 22)
    return Plot(
        f"Your own FP16 GEMM for M=N=K={size} on an {gpu} reaches {rate} TFLOP/s; the library reaches {library}. What is wrong, and what do you do first?",
        slow_gemm(rng, size, rate, library, tensor),
        number=Decisive("Which share of its peak does the busiest matrix unit reach?", tensor / 100, Unit.SHARE),
    )


@planted("autotune-space-too-small")
def two_configurations(rng: Rng) -> Plot:
    speed, tiles = rng.between(0.55, 0.85), rng.some(((128, 128), (64, 64), (128, 64)), rng.pick(2, 3))
    return Plot(
        f"A fused Triton kernel, hoped to win 1.5x, runs at {speed:.2f}x of eager. It compiles and is right. Why?",
        slow_triton(rng, tuple(tiles), speed),
        number=Decisive("How many configurations were tried?", len(tiles), within=EXACT),
    )


@planted("compute-roof")
def full_pipe(rng: Rng) -> Plot:
    return _counters(
        rng,
        "compute-roof",
        "A library matrix product shows an occupancy of 25% on a {chip}, and the team wants to double it. Do you?",
    )


@planted("dram-bandwidth-bound")
def full_memory(rng: Rng) -> Plot:
    return _counters(
        rng,
        "dram-bandwidth-bound",
        "A kernel that adds two tensors uses a tenth of the arithmetic of a {chip}. A colleague wants to rewrite it. Do you?",
    )


@planted("fusion-not-worth-it")
def loses_to_the_library(rng: Rng) -> Plot:
    speed, cheap, wide = rng.between(0.55, 0.8), rng.whole(3, 8), rng.between(0.82, 0.95)
    case = f'symptom = "my Triton kernel is slower than PyTorch eager"\ngpu = "{rng.pick("h100", "h200")}"\ncustom_speedup = {speed:.2f}\nexpected_speedup = 1.5\n'
    tuned = f'autotune_configs = {rng.whole(120, 180)}\nwide_search_speedup = {wide:.2f}\ncheap_op_share = "{cheap}%"\n'
    return Plot(
        f"A norm was fused into the matrix product after it, in Triton; it runs at {speed:.2f}x of the two separate kernels. The owner asks for another week of tuning. What do you say?",
        (exhibit("case", "case.toml", case, False), exhibit("autotune", "autotune.toml", tuned)),
        number=Decisive("Which speed against the library does the best configuration reach?", wide, Unit.RATIO),
    )
