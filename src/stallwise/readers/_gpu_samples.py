"""Samples of GPU state, whatever printed them: words into columns (gpu_words.toml, SI), collected by GPU, one table each.

nvidia-smi says the same things in five layouts. Each layout's reader hands over what it finds under which name, and
`GpuSamples` yields for every GPU a Table "gpu.samples" and the Series that others plot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np

from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Series, Source, Table
from stallwise.evidence.quantity import Quantity
from stallwise.readers._patterns import document, patterns

TABLE = "gpu.samples"
PLOTTED: dict[str, Quantity] = {
    "utilisation_share": hw.GPU_UTILISATION, "power_w": hw.GPU_POWER, "clock_sm_hz": hw.GPU_CLOCK,
    "temperature_c": hw.GPU_TEMPERATURE, "memory_used_bytes": hw.GPU_MEMORY_USED,
}  # fmt: skip
ALL_REASONS = (1 << 48) - 1  # more bits than any driver has given a meaning to, and few enough for a float
_P = patterns("nvidia_smi")
_NUMBER = re.compile(r"^\s*(-?\d+(?:\.\d+)?)\s*([A-Za-z%/]*)")
_SCALES = {"MiB": 2.0**20, "KiB": 2.0**10, "GiB": 2.0**30, "MHz": 1e6, "%": 0.01, "KB/s": 1e3, "MB/s": 1e6}
_FLAGS = {"yes": 1.0, "no": 0.0}
_STAMPS = ("%a %b %d %H:%M:%S %Y", "%a %d %b %Y %I:%M:%S %p")


def gpu_words() -> dict[str, Any]:
    """How tools name what a card tells of itself."""
    return document("gpu_words")


@cache
def report_patterns(table: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Paths of a report, and the columns that they are."""
    return tuple((re.compile(pattern), column) for pattern, column in gpu_words()[table])


def number(text: str, unit: str = "") -> float:
    """ "99 %" as 0.99, "13312 MiB" as bytes, yes as 1; `unit` is used where the text has none. NaN where there is no value."""
    match = _NUMBER.match(text)
    if not match:
        return _FLAGS.get(text.strip().lower(), float("nan"))
    return float(match[1]) * _SCALES.get(match[2] or unit, 1.0)


def seconds(text: str) -> float:
    """A timestamp in any of nvidia-smi's spellings, as seconds; NaN when it is none."""
    cleaned = " ".join(text.split())
    for read in (datetime.fromisoformat, *((lambda x, y=y: datetime.strptime(x, y)) for y in _STAMPS)):
        try:
            return read(cleaned.replace("/", "-")).replace(tzinfo=UTC).timestamp()
        except (ValueError, OverflowError):
            continue
    return float("nan")


def put(values: dict[str, float], path: str, text: str, unit: str = "") -> None:
    """Stores what stands under a name, or a path of names, in the column that it belongs to, if any."""
    if reason := _P["reason"].search(path):
        if (bits := _bits(reason[1], text.strip().lower())) is not None:
            values["reasons"] = float((int(values.get("reasons", 0.0)) | bits) & ALL_REASONS)
        return
    value = number(text, unit)
    if path in gpu_words()["query"]:
        values[gpu_words()["query"][path]] = value
    elif value == value:
        summed = next((column for pattern, column in report_patterns("summed") if pattern.search(path)), None)
        if summed is not None:
            values[summed] = values.get(summed, 0.0) + value
        elif column := next((c for pattern, c in report_patterns("report") if pattern.search(path)), None):
            values.setdefault(column, value)


def _bits(field: str, text: str) -> int | None:
    """A mask in hexadecimal, or one reason that holds, or held for a part of the time."""
    if field in ("active", "supported"):
        mask = re.fullmatch(r"0x([0-9a-f]{1,16})", text)
        return int(mask[1], 16) if mask and field == "active" else None
    part = number(text)
    if text not in ("active", "not active") and part != part:
        return None
    bit: int = gpu_words()["reasons"].get(field, 0)
    return bit if text == "active" or part > 0 else 0


class GpuSamples:
    """Rows by GPU in the order seen."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.rows: dict[Scope, list[tuple[int, dict[str, float]]]] = {}
        self.meta: dict[Scope, dict[str, str]] = {}

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
        self.rows.setdefault(scope, []).append((line, values))
        known = self.meta.setdefault(scope, {"name": "", "bus_id": ""})
        known |= {key: text for key, text in (("name", name), ("bus_id", bus_id.lower())) if text}

    def items(self) -> Iterator[Item]:
        """Tables, series and names."""
        for scope, rows in self.rows.items():
            first, last = rows[0][0], rows[-1][0]
            source = Source(self.file, f"line {first}" if first == last else f"lines {first}-{last}")
            names = dict.fromkeys(("time_s", *(key for _, row in rows for key in row)))
            columns = {name: np.array([row.get(name, np.nan) for _, row in rows]) for name in names}
            if np.isnan(columns["time_s"]).any():  # without clocks the order is all there is
                columns["time_s"] = np.arange(len(rows), dtype=float)
            yield Table(TABLE, columns, source, scope, self.meta[scope])
            if self.meta[scope]["name"]:
                yield Fact(hw.GPU_NAME, self.meta[scope]["name"], source, scope)
            for column, quantity in PLOTTED.items():
                if column in columns and len(rows) > 1:
                    known = ~np.isnan(columns[column])
                    over, values = columns["time_s"][known], columns[column][known]
                    yield Series(quantity, over, values, source, scope, over="time_s")
