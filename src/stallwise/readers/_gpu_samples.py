"""Samples of GPU state, whatever printed them: words into columns (gpu_words.toml, SI), collected by GPU, one table each.

nvidia-smi says the same things in five layouts. Each layout's reader hands over what it finds under which name, and
`GpuSamples` yields for every GPU a Table "gpu.samples" and the Series that others plot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Series, Source, Table
from stallwise.evidence.quantity import Quantity
from stallwise.readers._patterns import document, patterns

TABLE = "gpu.samples"
Values = NDArray[np.float64]
Lines = NDArray[np.int64]
PLOTTED: dict[str, Quantity] = {
    "utilisation_share": hw.GPU_UTILISATION, "power_w": hw.GPU_POWER, "clock_sm_hz": hw.GPU_CLOCK,
    "temperature_c": hw.GPU_TEMPERATURE, "memory_used_bytes": hw.GPU_MEMORY_USED,
}  # fmt: skip
ALL_REASONS = (1 << 48) - 1  # more bits than any driver has given a meaning to, and few enough for a float
_P = patterns("nvidia_smi")
_NUMBER = re.compile(r"^\s*(-?\d+(?:\.\d+)?)\s*([A-Za-z%/]*)")
_SCALES = {"MiB": 2.0**20, "KiB": 2.0**10, "GiB": 2.0**30, "MHz": 1e6, "%": 0.01, "KB/s": 1e3, "MB/s": 1e6}
_FLAGS = {"yes": 1.0, "no": 0.0}
_STAMPS: tuple[Callable[[str], datetime], ...] = (
    datetime.fromisoformat,
    lambda text: datetime.strptime(text, "%a %b %d %H:%M:%S %Y"),
    lambda text: datetime.strptime(text, "%a %d %b %Y %I:%M:%S %p"),
)


def gpu_words() -> dict[str, Any]:
    """How tools name what a card tells of itself."""
    return document("gpu_words")


@cache
def report_patterns(table: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Paths of a report, and the columns that they are."""
    return tuple((re.compile(pattern), column) for pattern, column in gpu_words()[table])


@lru_cache(maxsize=1 << 12)
def number(text: str, unit: str = "") -> float:
    """ "99 %" as 0.99, "13312 MiB" as bytes, yes as 1; `unit` is used where the text has none. NaN where there is no value."""
    match = _NUMBER.match(text)
    if not match:
        return _FLAGS.get(text.strip().lower(), float("nan"))
    return float(match[1]) * _SCALES.get(match[2] or unit, 1.0)


def seconds(text: str) -> float:
    """A timestamp in any of nvidia-smi's spellings, as seconds; NaN when it is none."""
    cleaned = " ".join(text.split()).replace("/", "-")
    for read in _STAMPS:
        try:
            return read(cleaned).replace(tzinfo=UTC).timestamp()
        except (ValueError, OverflowError):
            continue
    return float("nan")


@lru_cache(maxsize=1 << 12)
def place_of(path: str) -> tuple[str, str]:
    """How what stands under a name, or a path of names, is kept, and in which column; two empty words where it is not."""
    if reason := _P["reason"].search(path):
        return "reason", str(reason[1])
    if path in gpu_words()["query"]:
        return "query", str(gpu_words()["query"][path])
    told = ((kind, c) for kind in ("summed", "report") for pattern, c in report_patterns(kind) if pattern.search(path))
    return next(told, ("", ""))


def put(values: dict[str, float], path: str, text: str, unit: str = "") -> None:
    """Stores what stands under a path in the column that it belongs to, if any."""
    kind, column = place_of(path)
    if kind == "reason":
        if (bits := _bits(column, text.strip().lower())) is not None:
            values["reasons"] = float((int(values.get("reasons", 0.0)) | bits) & ALL_REASONS)
    elif kind == "query":
        values[column] = number(text, unit)
    elif kind and (value := number(text, unit)) == value:
        values[column] = values.get(column, 0.0) + value if kind == "summed" else values.get(column, value)


def put_column(columns: dict[str, Values], path: str, texts: Sequence[str], unit: str = "") -> None:
    """The same for a column of texts: each that comes again is read once, and what does not say a number is NaN."""
    kind, column = place_of(path)
    if kind == "reason":
        new = each(texts, lambda text: None if (b := _bits(column, text.strip().lower())) is None else b & ALL_REASONS)
        old = columns.get("reasons", new)
        both = ~np.isnan(old) & ~np.isnan(new)
        joint = np.where(np.isnan(old), new, old)
        joint[both] = old[both].astype(np.int64) | new[both].astype(np.int64)
        columns["reasons"] = joint
    elif kind:
        new = each(texts, lambda text: number(text, unit))
        if column not in columns or kind == "query":
            columns[column] = new
        else:
            added = columns[column] + np.nan_to_num(new) if kind == "summed" else columns[column]
            columns[column] = np.where(np.isnan(columns[column]), new, added)


def each(texts: Sequence[str], read: Callable[[str], float | None]) -> Values:
    """What each text says, NaN where nothing."""
    known = {text: read(text) for text in dict.fromkeys(texts)}
    return np.array([known[text] for text in texts], dtype=float)


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
        self.tables: dict[Scope, list[tuple[Lines, dict[str, Values]]]] = {}
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
        self._name(scope, name, bus_id)

    def _name(self, scope: Scope, name: str, bus_id: str) -> None:
        known = self.meta.setdefault(scope, {"name": "", "bus_id": ""})
        known |= {key: text for key, text in (("name", name), ("bus_id", bus_id.lower())) if text}

    def add_table(
        self, gpus: Lines, columns: dict[str, Values], lines: Lines, names: Sequence[str], bus_ids: Sequence[str]
    ) -> None:
        """Many samples, each of the GPU that stands in its row."""
        _, firsts = np.unique(gpus, return_index=True)
        for gpu in gpus[np.sort(firsts)].tolist():
            own = np.flatnonzero(gpus == gpu)
            scope, parts = Scope(gpu=gpu), {key: column[own] for key, column in columns.items()}
            self.tables.setdefault(scope, []).append((lines[own], parts))
            name, bus_id = (next((told[at] for at in own[::-1].tolist() if told[at]), "") for told in (names, bus_ids))
            self._name(scope, name, bus_id)

    def _columns(self, scope: Scope) -> tuple[Lines, dict[str, Values]]:
        """All samples of a GPU, NaN where one lacks what another has."""
        tables, rows = self.tables.get(scope, []), self.rows.get(scope, [])
        names = dict.fromkeys(
            ("time_s", *(key for _, table in tables for key in table), *(k for _, row in rows for k in row))
        )
        parts = [np.array([line for line, _ in rows], dtype=np.int64), *(lines for lines, _ in tables)]
        columns = {
            name: np.concatenate([
                np.array([row.get(name, np.nan) for _, row in rows]),
                *(table.get(name, np.full(len(lines), np.nan)) for lines, table in tables),
            ])
            for name in names
        }  # fmt: skip
        return np.concatenate(parts), columns

    def items(self) -> Iterator[Item]:
        """Tables, series and names."""
        for scope in self.meta:
            lines, columns = self._columns(scope)
            first, last = lines[0], lines[-1]
            source = Source(self.file, f"line {first}" if first == last else f"lines {first}-{last}")
            if np.isnan(columns["time_s"]).any():  # without clocks the order is all there is
                columns["time_s"] = np.arange(len(lines), dtype=float)
            yield Table(TABLE, columns, source, scope, self.meta[scope])
            if self.meta[scope]["name"]:
                yield Fact(hw.GPU_NAME, self.meta[scope]["name"], source, scope)
            for column, quantity in PLOTTED.items():
                if column in columns and len(lines) > 1:
                    known = ~np.isnan(columns[column])
                    over, values = columns["time_s"][known], columns[column][known]
                    yield Series(quantity, over, values, source, scope, over="time_s")
