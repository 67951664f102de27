"""Kernel configurations as one table: axes, times, spills."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Source, Table

KIND = "autotune"
BYTES_PER_SPILL = 4.0  # compilers count spilled 32-bit registers
_NOT_AXES = {"ms", "time_ms", "us", "time_us", "time", "time_s", "median_ms", "mean_ms", "p50", "rel_err", "error", "err",
             "tflops", "gbps", "nreg", "nspill", "n_regs", "n_spills", "shared", "shared_bytes", "speedup"}  # fmt: skip
_TIMES = (("ms", 1e-3), ("time_ms", 1e-3), ("median_ms", 1e-3), ("mean_ms", 1e-3), ("p50", 1e-3), ("us", 1e-6),
          ("time_us", 1e-6), ("time_s", 1.0), ("time", 1e-3))  # fmt: skip
_AXIS = re.compile(
    r"^(?:BLOCK|GROUP|TILE|SPLIT|num_|XBLOCK|YBLOCK|RBLOCK|R0_|NUM_|waves|matrix|kpack|W|STAGES|WARPS)", re.I
)


def is_config(row: dict[str, Any]) -> bool:
    """A row with at least one axis of a tuned kernel."""
    return any(_AXIS.match(str(key)) for key in row)


def items_of(
    rows: list[dict[str, Any]], source: Source, *, kernel: str = "", library_s: float | None = None, shape: Any = None
) -> Iterator[Item]:
    """The table, and what the compiler says of the best configuration."""
    axes = sorted(
        {key for row in rows for key, v in row.items() if key not in _NOT_AXES and isinstance(v, (int, float))}
    )
    columns: dict[str, Any] = {a: np.array([_number(row.get(a)) for row in rows]) for a in axes}
    times = np.array([_time(row) for row in rows])
    spills = np.array([_number(row.get("nspill", row.get("n_spills"))) for row in rows])
    columns |= {"time_s": times, "spills": spills}
    meta: dict[str, Any] = {"axes": axes, "kernel": kernel, "shape": shape}
    if library_s is not None:
        meta["library_s"] = library_s
    yield Table(KIND, columns, source, meta=meta)
    if not np.isfinite(times).any():
        return
    best = int(np.nanargmin(times))
    registers = rows[best].get("nreg", rows[best].get("n_regs"))
    if registers is None and not np.isfinite(spills[best]):
        return  # nothing is known of the kernel but its times
    scope = Scope(kernel=kernel or "the tuned kernel")
    yield Fact(k.TIME, float(times[best]), source, scope)
    if np.isfinite(spills[best]) and spills[best] > 0:
        yield Fact(k.SPILL_BYTES_PER_THREAD, BYTES_PER_SPILL * float(spills[best]), source, scope)
    if registers is not None:
        yield Fact(k.REGISTERS, float(registers), source, scope)


def _time(row: dict[str, Any]) -> float:
    for key, scale in _TIMES:
        value = row.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return _number(value) * scale
        if isinstance(value, list) and value and isinstance(value[0], (int, float)):
            return _number(value[0]) * scale
    return float("nan")


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
