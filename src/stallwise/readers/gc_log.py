"""Python's garbage collector talking: what gc.set_debug(gc.DEBUG_STATS) prints to stderr."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import median

import numpy as np

from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Series, Source

FORMAT = "garbage collector log"
CAPTURE = "gc.set_debug(gc.DEBUG_STATS)"
_DONE = re.compile(r"gc: done.*?([\d.]+) ?s elapsed")
_GENERATION = re.compile(r"gc: collecting generation (\d)")
_STEP = re.compile(r"(?:step|update|iteration|iter)\s*[=:#]?\s*(\d+)")
FULL = 2  # the generation whose collection walks every object


def recognises(name: str, head: bytes) -> bool:
    """Lines of the collector."""
    return b"gc: collecting generation" in head or b"gc: done" in head or b"gc.get_threshold()" in head


def read(artifact: Artifact) -> Iterator[Item]:
    """Length of full collections and where they fell."""
    generation, step = FULL, float("nan")
    yield from _settings(artifact)
    pauses: list[tuple[float, float, int]] = []
    for number, text in enumerate(artifact.lines(), 1):
        if match := _STEP.search(text):
            step = float(match[1])
        if match := _GENERATION.search(text):
            generation = int(match[1])
        if (match := _DONE.search(text)) and generation == FULL:
            pauses.append((step, float(match[1]), number))
    if not pauses:
        return
    source = Source(artifact.name, f"lines {pauses[0][2]}-{pauses[-1][2]}")
    yield Fact(run.GC_PAUSE, median(p for _, p, _ in pauses), source, samples=len(pauses))
    yield Fact(run.GC_COLLECTIONS, float(len(pauses)), source)
    steps = np.array([s for s, _, _ in pauses])
    if len(pauses) > 1 and np.isfinite(steps).all():
        yield Series(run.GC_PAUSE, steps, np.array([p for _, p, _ in pauses]), source)


def _settings(artifact: Artifact) -> Iterator[Item]:
    for number, text in enumerate(artifact.lines(), 1):
        if "gc.get_threshold()" in text or "gc enabled" in text:
            tame = re.search(r"freeze called|gc disabled|\(0, ", text)
            yield Fact(run.GC_AUTOMATIC, 0.0 if tame else 1.0, Source(artifact.name, f"line {number}"))
            return
