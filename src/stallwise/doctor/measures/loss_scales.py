"""The loss scale after each skipped step, from what scalers say when gradients overflow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from stallwise.evidence.catalog import run
from stallwise.evidence.event import Event
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Series, Source

ORDER = -20
FLOOR = 0.5  # below the smallest scale that scalers go to: they stop at one


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """A series for each file, and how many steps were skipped."""
    files: dict[str, list[Event]] = defaultdict(list)
    for event in evidence.events_of("loss-scale-overflow", "loss-scale-floor"):
        files[event.source.file].append(event)
    for file, events in files.items():
        scales: list[float] = []
        for event in events:
            if event.kind == "loss-scale-overflow":
                scales.append(event.number("after"))
            elif scales:
                scales.append(min(scales[-1], FLOOR))
        if not scales:
            continue
        lines = [event.source.where.removeprefix("line ") for event in events]
        source = Source(file, f"lines {lines[0]}-{lines[-1]}")
        if len(scales) > 1:
            yield Series(run.LOSS_SCALE, np.arange(len(scales), dtype=float), np.array(scales), source)
        yield Fact(run.SKIPPED_STEPS, float(len(scales)), source)
