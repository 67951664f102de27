# ruff: noqa: E501
"""Kernels, told by Nsight Compute's counters, by stated summaries and by autotuners."""

from __future__ import annotations

from stallwise.drill.incident import Plot, exhibit
from stallwise.drill.papers.counters import raw_csv
from stallwise.drill.papers.dice import Dice
from stallwise.drill.scenarios._planted import planted

CHIPS = {"A100": ("8.0", 108), "H100": ("9.0", 132), "H200": ("9.0", 132)}
LATENCY = 20.0  # cycles between two instructions of a warp: stalls below are shares of it


def _counters(dice: Dice, setup: str, **values: float) -> Plot:
    chip = dice.pick(*CHIPS)
    capability, sms = CHIPS[chip]
    base: dict[str, float] = {
        "time_ms": dice.between(0.4, 4), "sm": 30, "memory": 25, "dram": 20, "l1": 20, "l2": 20, "issue": 20, "occupancy": 60,
        "occupancy_limit": 75, "grid": sms * 74, "sms": sms, "waves": 18.52, "threads": 32, "tensor": 0, "fma": 5, "fp64": 0, "alu": 10,
        "instructions": 1e7, "spills": 0, "cycles": 1e6, "active": 9.9e5, "most_active": 1e6, "latency": LATENCY, "registers": 40,
        "block": 256, "long_scoreboard": 4.0, "mio": 0.5, "barrier": 0.2, "excess": 0, "sectors": 1e6, "conflict_excess": 0, "wavefronts": 1e6,
    }  # fmt: skip
    base |= values
    noisy = {
        w: v
        if w in ("grid", "sms", "block", "registers", "waves")
        else min(dice.near(v, 0.01), 100 if w in ("dram", "sm") else 1e12)
        for w, v in base.items()
    }
    if "waves" not in values:
        noisy["waves"] = base["grid"] / sms / 4
    return Plot(
        setup.format(chip=chip),
        (
            exhibit(
                "ncu",
                "ncu_raw.csv",
                raw_csv(
                    dice.pick("k0(float *, int)", "void step<256>(float const *, float *, int)"), capability, noisy
                ),
            ),
        ),
    )


@planted("uncoalesced-access")
def strided(dice: Dice) -> Plot:
    return _counters(
        dice,
        "A kernel that only reorders rows takes several times as long on a {chip} as a copy of the same bytes. Why?",
        dram=88,
        l2=70,
        excess=7.5e5,
        long_scoreboard=18,
        sm=8,
        issue=8,
    )


@planted("register-spills")
def spills(dice: Dice) -> Plot:
    return _counters(
        dice,
        "After unrolling the inner loop further, a kernel on a {chip} became slower though it executes fewer branches. Why?",
        spills=3e6,
        l1=70,
        registers=255,
        occupancy=12,
        occupancy_limit=12.5,
        long_scoreboard=14,
    )


@planted("shared-bank-conflicts")
def conflicts(dice: Dice) -> Plot:
    return _counters(
        dice,
        "A transpose through shared memory is slower on a {chip} than the naive one. Global accesses are perfect. Why?",
        conflict_excess=8.5e5,
        l1=95,
        mio=12,
        dram=5,
        long_scoreboard=1,
    )


@planted("warp-divergence")
def divergence(dice: Dice) -> Plot:
    return _counters(
        dice,
        "A kernel over sparse rows keeps the issue slots of a {chip} busy and gets little done. Why?",
        threads=dice.between(7, 11),
        issue=85,
        sm=85,
        alu=50,
        long_scoreboard=2,
    )


@planted("barrier-stalls")
def barriers(dice: Dice) -> Plot:
    return _counters(
        dice,
        "A block-wide reduction in a loop reaches a tenth of the bandwidth of a {chip}. Why?",
        barrier=12,
        long_scoreboard=2,
        issue=30,
        block=1024,
    )


@planted("latency-bound-low-occupancy")
def few_warps(dice: Dice) -> Plot:
    return _counters(
        dice,
        "A pointer-chasing kernel leaves compute and memory of a {chip} nearly idle. Why?",
        occupancy=6,
        occupancy_limit=6.25,
        long_scoreboard=19,
        issue=2,
        sm=2,
        dram=8,
        memory=9,
    )


@planted("grid-too-small")
def small_grid(dice: Dice) -> Plot:
    blocks = dice.whole(10, 24)
    return _counters(
        dice,
        "A product of a tall and a narrow matrix runs on a {chip} no faster than on a much smaller card. Why?",
        grid=blocks,
        waves=blocks / 132,
        tensor=8,
        active=1.4e5,
        most_active=1e6,
        occupancy=12,
    )


@planted("block-imbalance")
def ragged(dice: Dice) -> Plot:
    return _counters(
        dice,
        "A kernel with one block per document reaches a fraction of its rate on a {chip} when the lengths vary. Why?",
        active=4e5,
        most_active=9.6e5,
    )


@planted("fp64-in-hot-path")
def doubles(dice: Dice) -> Plot:
    return _counters(
        dice,
        "A float kernel on a {chip} became far slower when a constant was added. Why?",
        fp64=94,
        sm=94,
        issue=dice.between(5, 9),
        long_scoreboard=1,
    )


@planted("tensor-cores-starved")
def starved(dice: Dice) -> Plot:
    size, gpu = dice.pick(4096, 8192), dice.pick("h100", "h200")
    rate, library = dice.whole(140, 240), dice.whole(600, 680)
    tensor = dice.whole(10, 22)
    case = f'symptom = "my GEMM kernel is slow"\ngpu = "{gpu}"\nprecision = "fp16"\nm = {size}\nn = {size}\nk = {size}\nflop_rate = "{rate} TFLOPS"\nlibrary_flop_rate = "{library} TFLOPS"\n'
    summary = f'summary = """\nSM Busy: {dice.whole(88, 96)}%\nTensor Core Utilization: {tensor}%\nDRAM Throughput: {dice.whole(35, 50)}%\nWarp Stall (Long Scoreboard): {dice.whole(33, 48)}%\nWarp Stall (MIO Throttle): {dice.whole(15, 24)}%\nAchieved Occupancy: {dice.whole(30, 42)}%\nRegister usage: 168\nBlock size: 256\n"""\n'
    return Plot(
        f"Your own FP16 GEMM for M=N=K={size} on an {gpu.upper()} reaches {rate} TFLOP/s; the library reaches {library}. What is wrong, and what do you do first?",
        (
            exhibit("case", "case.toml", case, False),
            exhibit("ncu", "ncu.toml", summary),
            exhibit("sass", "sass.toml", "wgmma = true\nasync_copy = false\n"),
        ),
    )


@planted("autotune-space-too-small")
def two_configurations(dice: Dice) -> Plot:
    speed, count = dice.between(0.55, 0.85), dice.pick(1, 2, 3)
    case = f'symptom = "my Triton kernel is slower than PyTorch eager"\ngpu = "{dice.pick("h100", "h200")}"\ncustom_speedup = {speed:.2f}\nexpected_speedup = 1.5\n'
    tuned = f"autotune_configs = {count}\nblock_k = 32\nnum_stages = 2\nnum_warps = 4\n"
    return Plot(
        f"A fused Triton kernel, hoped to win 1.5x, runs at {speed:.2f}x of eager. It compiles and is right. Why?",
        (
            exhibit("case", "case.toml", case, False),
            exhibit("autotune", "autotune.toml", tuned),
            exhibit("autotune", "wide_search.toml", f"wide_search_speedup = {dice.between(1.05, 1.3):.2f}\n"),
        ),
    )
