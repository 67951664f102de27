"""What a span costs: on, off, and with device events where there is a GPU. Prints one line each.

python bench/span_cost.py
"""

from __future__ import annotations

import tempfile
import time

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


def main() -> None:
    empty = per_call_s(nothing)
    off = per_call_s(one_span) - empty
    stallwise.start(tempfile.mkdtemp(), auto=False, watchdog=False)
    on = per_call_s(one_span) - empty
    stallwise.stop()
    print(f"span off  {off * 1e9:7.0f} ns   (target 100)")
    print(f"span on   {on * 1e9:7.0f} ns   (target 1500)")


if __name__ == "__main__":
    main()
