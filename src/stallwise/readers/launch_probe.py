"""A launch benchmark as a table: time of launching n kernels one by one and, beside it, of replaying them as a graph."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Source
from stallwise.readers.shapes._plainly import plain_words as words_of

FORMAT = "launch probe"
_SCALE = {"us": 1e-6, "ms": 1e-3, "ns": 1e-9, "s": 1.0}
_COUNT = {"kernels", "launches", "nodes", "kernel", "ops"}


def recognises(name: str, head: bytes) -> bool:
    """A first column that counts kernels and others that time launches."""
    columns = head[:4096].split(b"\n", 1)[0].decode("utf-8", "replace").split(",")
    return len(columns) >= 2 and bool(_COUNT & set(words_of(columns[0]))) and any(_role(c) for c in columns[1:])


def _role(column: str) -> str:
    words = set(words_of(column))
    if not words & set(_SCALE):
        return ""
    if words & {"replay", "graph", "graphs"}:
        return "replay"
    return "launch" if any(w.startswith("launch") or w == "eager" for w in words) else ""


def read(artifact: Artifact) -> Iterator[Item]:
    """Seconds a kernel, as the slope over the number of kernels."""
    rows = list(csv.reader(artifact.lines()))
    columns, counts = rows[0], []
    times: dict[int, list[float]] = {i: [] for i, c in enumerate(columns) if i and _role(c)}
    for row in rows[1:]:
        try:
            numbers = [float(cell) for cell in row]
        except ValueError:
            continue
        if len(numbers) == len(columns):
            counts.append(numbers[0])
            for i in times:
                times[i].append(numbers[i])
    for i, values in times.items():
        scale = next(_SCALE[w] for w in reversed(words_of(columns[i])) if w in _SCALE)
        if len(set(counts)) > 1 and np.isfinite([*counts, *values]).all():
            slope = float(np.polyfit(counts, values, 1)[0]) * scale
        elif counts:
            slope = values[0] * scale / max(counts[0], 1.0)
        else:
            continue
        quantity = run.REPLAY_COST if _role(columns[i]) == "replay" else run.LAUNCH_COST
        yield Fact(quantity, slope, Source(artifact.name, f"column {columns[i]}"), samples=len(counts))
