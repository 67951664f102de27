"""What a span costs, on and off, and what recording a small step on a CPU costs with all defaults. Prints one line each.

    python bench/span_cost.py [--rounds 5]

The step (three modules, SGD, a few hundred microseconds) is taken in blocks with and without the recorder in turn; what counts is
the processor time of the whole process, with the sampler's and the writer's threads.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable

import stallwise

COUNT = 20_000


def per_call_s(body: object, count: int = COUNT, repeats: int = 40) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(count):
            body()  # type: ignore[operator]
        best = min(best, time.perf_counter() - start)
    return best / count


def one_span() -> None:
    with stallwise.span("forward"):
        pass


def nothing() -> None:
    pass


def small_step() -> Callable[[], None]:
    """One step of a model so small that nearly all of it is Python and PyTorch's own calls."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch, target = torch.randn(8, 16), torch.randint(0, 4, (8,))

    def step() -> None:
        loss = nn.functional.cross_entropy(model(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def cpu_s(step: Callable[[], None], count: int) -> float:
    """Processor seconds a step, of all threads."""
    begin = time.process_time()
    for _ in range(count):
        step()
    return (time.process_time() - begin) / count


def step_cost(rounds: int, count: int = 1500) -> tuple[float, float]:
    """Processor seconds a step without the recorder, and what it adds: medians over pairs of neighbouring blocks."""
    step = small_step()
    cpu_s(step, 300)
    plain, added = [], []
    for _ in range(rounds):
        off = cpu_s(step, count)
        stallwise.start(tempfile.mkdtemp())
        on = cpu_s(step, count)
        stallwise.stop()
        off = (off + cpu_s(step, count)) / 2
        plain.append(off)
        added.append(on - off)
    return statistics.median(plain), statistics.median(added)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=5)
    rounds = options.parse_args().rounds
    empty = per_call_s(nothing)
    off = per_call_s(one_span) - empty
    stallwise.start(tempfile.mkdtemp(), auto=False, watchdog=False)
    stallwise.step()  # the job says where its steps end: no span is one
    on = per_call_s(one_span) - empty
    stallwise.stop()
    print(f"span off  {off * 1e9:7.0f} ns   (target 100)")
    print(f"span on   {on * 1e9:7.0f} ns   (target 1500)")
    try:
        plain, added = step_cost(rounds)
    except ImportError:
        print("step      no PyTorch here")
        return
    print(f"step      {added * 1e6:7.1f} us of CPU more than {plain * 1e6:.0f} ({added / plain:.1%})   (target 60)")


if __name__ == "__main__":
    main()
