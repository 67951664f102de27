"""Samples of GPU state, whatever printed them: collected by GPU, handed on as one table each with equal columns.

nvidia-smi says the same things in five layouts. Each layout's reader turns its words into the columns below (SI), and
`GpuSamples` yields for every GPU a Table "gpu.samples" and the Series that others plot.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Series, Source, Table
from stallwise.evidence.quantity import Quantity

TABLE = "gpu.samples"
MIB = 2.0**20

PLOTTED: dict[str, Quantity] = {
    "utilisation_share": hw.GPU_UTILISATION,
    "power_w": hw.GPU_POWER,
    "clock_sm_hz": hw.GPU_CLOCK,
    "temperature_c": hw.GPU_TEMPERATURE,
    "memory_used_bytes": hw.GPU_MEMORY_USED,
}
NOT_A_VALUE = {
    "",
    "-",
    "n/a",
    "[n/a]",
    "[not supported]",
    "not supported",
    "[unknown error]",
    "unknown error",
    "unknown",
}
LOST = re.compile(r"gpu is lost|gpu requires reset|unable to determine the device handle", re.IGNORECASE)
_NUMBER = re.compile(r"^\s*(-?\d+(?:\.\d+)?)\s*([A-Za-z%/]*)")
_SCALES = {"MiB": MIB, "KiB": 2.0**10, "GiB": 2.0**30, "MHz": 1e6, "%": 0.01, "KB/s": 1e3, "MB/s": 1e6}
_TIME_LAYOUTS = (
    "%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%a %b %d %H:%M:%S %Y", "%a %d %b %Y %I:%M:%S %p",
    "%Y%m%d %H:%M:%S",
)  # fmt: skip


@cache
def gpu_words() -> dict[str, Any]:
    """How tools name what a card tells of itself (gpu_words.toml)."""
    return tomllib.loads(files("stallwise.readers").joinpath("gpu_words.toml").read_text(encoding="utf-8"))


def number(text: str, unit: str = "") -> float:
    """ "99 %" as 0.99, "13312 MiB" as bytes; `unit` is used where the text has none. NaN where there is no value."""
    if text.strip().lower() in NOT_A_VALUE:
        return float("nan")
    match = _NUMBER.match(text)
    if not match:
        return float("nan")
    return float(match[1]) * _SCALES.get(match[2] or unit, 1.0)


def seconds(text: str) -> float:
    """A timestamp in any of nvidia-smi's spellings, as seconds; NaN when it is none."""
    cleaned = " ".join(text.strip().split())
    for layout in _TIME_LAYOUTS:
        try:
            return datetime.strptime(cleaned, layout).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return float("nan")


class GpuSamples:
    """Rows by GPU in the order seen."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.rows: dict[Scope, list[dict[str, float]]] = {}
        self.lines: dict[Scope, list[int]] = {}
        self.names: dict[Scope, str] = {}
        self.bus_ids: dict[Scope, str] = {}

    def add(
        self,
        gpu: int,
        values: dict[str, float],
        line: int,
        *,
        name: str = "",
        bus_id: str = "",
        node: str | None = None,
    ) -> None:
        """One sample of one GPU."""
        scope = Scope(gpu=gpu, node=node)
        self.rows.setdefault(scope, []).append(values)
        self.lines.setdefault(scope, []).append(line)
        if name:
            self.names[scope] = name
        if bus_id:
            self.bus_ids[scope] = bus_id.lower()

    def items(self) -> Iterator[Item]:
        """Tables, series and names."""
        for scope, rows in self.rows.items():
            lines = self.lines[scope]
            where = f"line {lines[0]}" if lines[0] == lines[-1] else f"lines {lines[0]}-{lines[-1]}"
            source = Source(self.file, where)
            columns = self._columns(rows)
            meta = {"name": self.names.get(scope, ""), "bus_id": self.bus_ids.get(scope, "")}
            yield Table(TABLE, columns, source, scope, meta)
            if meta["name"]:
                yield Fact(hw.GPU_NAME, meta["name"], source, scope)
            for column, quantity in PLOTTED.items():
                if column in columns and len(rows) > 1:
                    known = ~np.isnan(columns[column])
                    yield Series(
                        quantity, columns["time_s"][known], columns[column][known], source, scope, over="time_s"
                    )

    @staticmethod
    def _columns(rows: list[dict[str, float]]) -> dict[str, NDArray[np.float64]]:
        names = dict.fromkeys(key for row in rows for key in row)
        columns = {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}
        time_s = columns.pop("time_s", np.full(len(rows), np.nan))
        if np.isnan(time_s).any():  # without clocks the order is all there is
            time_s = np.arange(len(rows), dtype=float)
        return {"time_s": time_s, **columns}
