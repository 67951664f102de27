"""Jobs with a profiler of their own, at every position relative to the steps that a recorder likes to trace."""

from __future__ import annotations

import os
import sys

import torch
from torch.profiler import ProfilerActivity, profile, schedule
from training_jobs import batch, fit, sgd, small

torch.set_num_threads(1)
torch.manual_seed(0)
CPU = [ProfilerActivity.CPU]


def _around(first: int, last: int, steps: int = 45) -> None:
    model = small()
    optimizer = sgd(model)
    mine: profile | None = None
    for n in range(steps):
        if n == first:
            mine = profile(activities=CPU)
            mine.start()
        fit(model, optimizer, 1)
        if n == last and mine is not None:
            mine.stop()
            print("events", sum(e.name.startswith("aten::") for e in mine.events()))
    print(float(model[0].weight.sum()))


def own_profiler_before() -> None:
    _around(3, 5)


def own_profiler_into_the_window() -> None:
    _around(7, 11)


def own_profiler_inside() -> None:
    _around(11, 11)


def own_profiler_out_of_the_window() -> None:
    _around(13, 18)


def own_profiler_in_a_later_window() -> None:
    _around(18, 30)


def own_profiler_after() -> None:
    _around(38, 40)


def own_profiler_all_the_time() -> None:
    _around(0, 44)


def own_profiler_at_every_step() -> None:
    model = small()
    optimizer = sgd(model)
    counts = []
    for _ in range(40):
        with profile(activities=CPU) as mine:
            fit(model, optimizer, 1)
        counts.append(sum(e.name.startswith("aten::") for e in mine.events()))
    print(sorted(set(counts)), len(counts))


def own_profiler_with_schedule() -> None:
    model, ready = small(), []
    optimizer = sgd(model)
    plan = schedule(wait=4, warmup=1, active=2, repeat=4)
    with profile(activities=CPU, schedule=plan, on_trace_ready=lambda p: ready.append(len(p.events()) > 0)) as mine:
        for _ in range(40):
            fit(model, optimizer, 1)
            mine.step()
    print(ready)


def own_legacy_profiler() -> None:
    model = small()
    optimizer = sgd(model)
    for n in range(30):
        if n % 3 == 2:
            with torch.autograd.profiler.profile() as mine:
                fit(model, optimizer, 1)
            print(n, sum(e.name.startswith("aten::") for e in mine.function_events))
        else:
            fit(model, optimizer, 1)


def own_profiler_in_a_thread() -> None:
    import threading

    counts = []

    def look() -> None:
        with profile(activities=CPU) as mine:
            small()(batch()[0])
        counts.append(sum(e.name == "aten::linear" for e in mine.events()))

    model = small()
    optimizer = sgd(model)
    for n in range(30):
        fit(model, optimizer, 1)
        if n in (10, 12, 20):
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
    print(counts)


def record_functions() -> None:
    model = small()
    optimizer = sgd(model)
    for _ in range(30):
        with torch.profiler.record_function("mine"):
            fit(model, optimizer, 1)
    print(float(model[0].weight.sum()))


def trace_and_profile_hooks() -> None:
    seen: set[str] = set()
    sys.setprofile(lambda frame, event, arg: seen.add(frame.f_code.co_name))
    model = small()
    optimizer = sgd(model)
    sys.setprofile(None)
    fit(model, optimizer, 14)
    print("small" in seen, sys.getprofile(), sys.gettrace())


if __name__ == "__main__":
    if os.environ.get("RECORD_INTO"):
        import stallwise

        stallwise.start(os.environ["RECORD_INTO"])
    globals()[sys.argv[1]]()
