"""Device work is timed by the host's clock without waiting for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stallwise.lint.source import Source, callee

CAUSE = "none"
FIX = "use stallwise.span or stallwise.bench, or synchronise before both clock reads"
COST = "the figure is launch time: on an H200 it shows 8 ms of forward in a 58 ms step"


CLOCKS = ("time.time", "time.perf_counter", "time.monotonic", "perf_counter", "timeit.default_timer", "time.time_ns")


def check(source: Source) -> Iterator[tuple[ast.expr, str]]:
    """Two clock reads around a model call or a backward pass, with no synchronisation between."""
    if not any("cuda" in line or "device" in line for line in source.lines):
        return
    for loop in source.training_loops:
        clocks = [c for c in ast.walk(loop) if isinstance(c, ast.Call) and callee(c) in CLOCKS]
        waits = [
            c
            for c in ast.walk(loop)
            if isinstance(c, ast.Call) and callee(c).endswith(("synchronize", ".item", "barrier"))
        ]
        works = [c for c in ast.walk(loop) if isinstance(c, ast.Call) and _works(c)]
        clocks.sort(key=lambda c: c.lineno)
        for first, second in zip(clocks, clocks[1:], strict=False):
            between = [w for w in works if first.lineno <= w.lineno <= second.lineno]
            if between and not any(first.lineno <= w.lineno <= second.lineno for w in waits):
                yield second, "a host clock around asynchronous device work measures only its launch"
                break


def _works(call: ast.Call) -> bool:
    name = callee(call)
    return name.endswith(".backward") or name.rsplit(".", 1)[-1] in ("model", "net", "module")
