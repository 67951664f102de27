"""What the recorder costs a step, with stacks: blocks of steps with it and without it in turn, in one process.

    python bench/gpu/recorder_overhead.py [--seconds 40 60] [--without-stacks]

The two steps are those of bench/gpu/overhead.py: 59 ms of one H200's own work, and a launch-bound one of 29 ms. Four
neighbouring blocks (on, off, off, on, or the other way round, by chance) give one ratio of mean steps, each without the slowest
tenth of all four, which are the machine's own hiccups. The cost is the middle of the means of all pairs of ratios (Hodges and
Lehmann's estimate: as robust as a median, and hardly wider than a mean), its 95% interval that of the signed-rank test, which
assumes no distribution. `of_medians` is the same for median steps, which may miss what falls on few of them. No profiler window
is part of it.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable

from overhead import SHAPES, VOCAB, build

BLOCK_S, FEWEST = 0.15, 4  # of steps: short, so that clocks and neighbours hit all blocks alike
WARM_STEPS = 3  # of each block: patches, threads and events are made there
HICCUPS = 0.1  # of the steps of a quad


def loop(which: str) -> Callable[[], None]:
    import torch
    import torch.nn.functional as F

    shape = SHAPES[which]
    model = build(shape)
    fused = shape["fused"]
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused, foreach=None if fused else False)
    ids = torch.randint(0, VOCAB, (shape["batch"], shape["seq"] + 1)).pin_memory()

    def step() -> None:
        batch = ids.to("cuda", non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(batch[:, :-1]).float().flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step()

    return step


def block_s(step: Callable[[], None], count: int) -> list[float]:
    """Seconds of every step; the last waits for the device, as the first of the next block begins with nothing queued."""
    import torch

    for _ in range(WARM_STEPS):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return times


def middle(values: list[float]) -> tuple[float, float, float]:
    """Hodges and Lehmann's middle with the 95% interval of the signed-rank test."""
    count = len(values)
    pairs = sorted((values[i] + values[j]) / 2 for i in range(count) for j in range(i, count))
    reach = 1.96 * math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    low = max(round(len(pairs) / 2 - reach), 0)
    return statistics.median(pairs), pairs[low], pairs[len(pairs) - 1 - low]


def without_hiccups(on: list[float], off: list[float]) -> float:
    """The ratio of mean steps, those of the slowest tenth left out on whichever side they are."""
    limit = sorted(on + off)[int((1 - HICCUPS) * (len(on) + len(off))) - 1]
    kept = [[t for t in side if t <= limit] or [min(side)] for side in (on, off)]
    return statistics.mean(kept[0]) / statistics.mean(kept[1])


def measure(which: str, seconds: float, stacks: bool) -> dict[str, object]:
    import stallwise

    step = loop(which)
    for _ in range(20):
        step()
    count = max(int(BLOCK_S / statistics.median(block_s(step, 10))), FEWEST)
    chance = random.Random(1)
    ratios, medians, off = [], [], []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        times: dict[bool, list[float]] = {True: [], False: []}
        first = chance.random() < 0.5  # nothing that comes and goes at a rhythm of its own can favour one
        for on in (first, not first, not first, first):  # and a drift hits both alike
            if on:
                stallwise.start(tempfile.mkdtemp(), stacks=stacks)
            times[on] += block_s(step, count)
            if on:
                stallwise.stop()
        ratios.append(without_hiccups(times[True], times[False]) - 1.0)
        medians.append(statistics.median(times[True]) / statistics.median(times[False]) - 1.0)
        off.append(statistics.median(times[False]))
    cost, low, high = middle(ratios)
    return {
        "step": which, "stacks": stacks, "off_ms": round(statistics.median(off) * 1e3, 3), "quads": len(ratios),
        "steps_a_block": count, "cost_share": round(cost, 5), "low": round(low, 5),
        "high": round(high, 5), "of_medians": [round(x, 5) for x in middle(medians)],
        "ratios": [round(r, 5) for r in ratios], "ratios_of_medians": [round(r, 5) for r in medians],
    }  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument(
        "--seconds", type=float, nargs=2, default=(40, 60), help="for the 59 ms step and the 29 ms one"
    )
    options.add_argument("--without-stacks", action="store_true", help="measure that as well")
    chosen = options.parse_args()
    for which, seconds in zip(SHAPES, chosen.seconds, strict=True):
        for stacks in (True, False) if chosen.without_stacks else (True,):
            print(json.dumps(measure(which, seconds, stacks)), flush=True)


if __name__ == "__main__":
    main()
