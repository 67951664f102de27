"""Samples of GPU state, whatever printed them: words into columns (gpu_words.toml, SI), collected by GPU, one table each.

nvidia-smi says the same things in five layouts. Each layout's reader hands over columns of texts under the names that it
finds, and `GpuSamples` yields for every GPU a Table "gpu.samples" and the Series that others plot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.catalog import quantities
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Scope, Series, Source, Table
from stallwise.late import np
from stallwise.readers._patterns import document, patterns
from stallwise.units import readings_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

TABLE = "gpu.samples"
Values: TypeAlias = "NDArray[np.float64]"
Lines: TypeAlias = "NDArray[np.int64]"
Card = tuple[int, str | None]  # its number and its node
ALL_REASONS = (1 << 48) - 1  # more bits than any driver has given a meaning to, and few enough for a float
_P = patterns("nvidia_smi")
_NUMBER = re.compile(r"^\s*(-?\d+(?:\.\d+)?)\s*([A-Za-z%/]*)")
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
    return float(match[1]) * next((factor for _, factor in readings_of(match[2] or unit)), 1.0)


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
    matching = (
        (kind, c) for kind in ("summed", "report") for pattern, c in report_patterns(kind) if pattern.search(path)
    )
    return next(matching, ("", ""))


def put(columns: dict[str, Values], path: str, texts: Sequence[str], unit: str = "") -> None:
    """Stores what stands under a path in the column that it belongs to, if any; NaN where a text says no number.

    Of several paths that belong to one column the first that says something counts, reasons are joined, and counters of
    several memories added."""
    kind, column = place_of(path)
    if not kind:
        return
    name, read = ("reasons", _bits) if kind == "reason" else (column, number)
    new = each(texts, lambda text: read(text, column if kind == "reason" else unit))
    old = columns.get(name, new)
    columns[name] = np.where(np.isnan(old), new, old)
    both = ~np.isnan(old) & ~np.isnan(new)
    if kind == "reason":
        columns[name][both] = old[both].astype(np.int64) | new[both].astype(np.int64)
    elif kind == "summed" and old is not new:
        columns[name][both] += new[both]


def each(texts: Sequence[str], read: Callable[[str], float]) -> Values:
    """What each text says; those that come again are read once."""
    known = {text: read(text) for text in dict.fromkeys(texts)}
    return np.array([known[text] for text in texts], dtype=float)


def _bits(text: str, field: str) -> float:
    """A mask, or one reason that holds, or held for a part of the time."""
    lowered = text.strip().lower()
    if field in ("active", "supported"):
        mask = _P["mask"].fullmatch(lowered) if field == "active" else None
        return float(int(mask[1], 16) & ALL_REASONS) if mask else float("nan")
    part = number(lowered)
    if lowered not in ("active", "not active") and part != part:
        return part
    bit: int = gpu_words()["reasons"].get(field, 0)
    return float(bit) if lowered == "active" or part > 0 else 0.0


class GpuSamples:
    """Samples by GPU in the order seen."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.blocks: dict[Scope, list[tuple[Lines, dict[str, Values]]]] = {}
        self.meta: dict[Scope, dict[str, str]] = {}

    def add(
        self,
        cards: Sequence[Card],
        columns: dict[str, Values],
        lines: Sequence[int],
        names: Sequence[str] = (),
        bus_ids: Sequence[str] = (),
    ) -> None:
        """Many samples, each of the card that stands in its row."""
        rows: dict[Card, list[int]] = {}
        for at, card in enumerate(cards):
            rows.setdefault(card, []).append(at)
        for (gpu, node), own in rows.items():
            scope, parts = Scope(gpu=gpu, node=node), {key: column[own] for key, column in columns.items()}
            self.blocks.setdefault(scope, []).append((np.array(lines, dtype=np.int64)[own], parts))
            known = self.meta.setdefault(scope, {"name": "", "bus_id": ""})
            for key, texts in (("name", names), ("bus_id", bus_ids)):
                known[key] = next((texts[at] for at in reversed(own) if texts and texts[at]), known[key])

    def items(self) -> Iterator[Item]:
        """Tables, series and names."""
        for scope, blocks in self.blocks.items():
            lines = np.concatenate([own for own, _ in blocks])
            columns = {
                name: np.concatenate([part.get(name, np.full(len(own), np.nan)) for own, part in blocks])
                for name in dict.fromkeys(("time_s", *(name for _, part in blocks for name in part)))
            }
            first, last = lines[0], lines[-1]
            source = Source(self.file, f"line {first}" if first == last else f"lines {first}-{last}")
            if np.isnan(columns["time_s"]).any():  # without clocks the order is all there is
                columns["time_s"] = np.arange(len(lines), dtype=float)
            yield Table(TABLE, columns, source, scope, self.meta[scope])
            if self.meta[scope]["name"]:
                yield Fact(hw.GPU_NAME, self.meta[scope]["name"], source, scope)
            for column, quantity in gpu_words()["plotted"].items():
                if column in columns and len(lines) > 1:
                    known = ~np.isnan(columns[column])
                    over, values = columns["time_s"][known], columns[column][known]
                    yield Series(quantities()[quantity], over, values, source, scope, over="time_s")
