"""The full state of a GPU as nvidia-smi -q words it, in text or XML: paths of names into the columns of a sample."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from stallwise.readers._cells import whole_of
from stallwise.readers._gpu_samples import GpuSamples, gpu_words, number

_REASON = re.compile(r"clocks_(?:event|throttle)_reasons/(?:.*/)?(?:clocks_(?:event|throttle)_reason_)?(\w+)$")
_FLAGS = {"yes": 1.0, "no": 0.0}


@cache
def _patterns(table: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern), column) for pattern, column in gpu_words()[table])


def word(text: str) -> str:
    """A name as one lower-case word."""
    return re.sub(r"[^a-z0-9]+", "_", text.strip().lower()).strip("_")


def take(path: str, text: str, values: dict[str, float]) -> None:
    """Stores one value of the report under the column it belongs to, if any."""
    reason = _REASON.search(path)
    if reason:
        if text.strip().lower() in ("active", "not active"):
            bit = gpu_words()["reasons"].get(reason[1], 0) if text.strip().lower() == "active" else 0
            values["reasons"] = float(int(values.get("reasons", 0.0)) | bit)
        return
    value = _FLAGS.get(text.strip().lower())
    if value is None:
        value = number(text)
    if value != value:
        return
    for pattern, column in _patterns("summed"):
        if pattern.search(path):
            values[column] = values.get(column, 0.0) + value
            return
    for pattern, column in _patterns("report"):
        if pattern.search(path):
            values.setdefault(column, value)
            return


def add_card(
    samples: GpuSamples, index: int, bus_id: str, line: int, time_s: float, told: Iterable[tuple[str, str]]
) -> None:
    """One sample of a card from what its report says, path by path."""
    values, name = {"time_s": time_s}, ""
    for path, value in told:
        if path == "product_name":
            name = value.strip()
        elif path == "minor_number" and (minor := whole_of(value)) is not None:
            index = minor
        else:
            take(path, value, values)
    samples.add(index, values, line, name=name, bus_id=bus_id)
