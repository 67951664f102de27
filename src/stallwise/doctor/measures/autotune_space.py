"""What a sweep shows: the best, the axis that matters, the edges, and what fusing could save at best."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stallwise.evidence.catalog import autotune as a
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.catalog import stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Source, Table
from stallwise.physics.costs.occupancy import chip
from stallwise.physics.specs.hardware import Gpu, find_gpu

ORDER = 8
USUAL_CARD = "h100"  # where the card is not known; its bandwidth lies between an A100's and a B200's
WIDTH = 2.0  # bytes an element in 16 bit
SAME = 1.02  # times within this are equal


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts of the largest table of configurations."""
    tables = evidence.table("autotune")
    if not tables:
        return
    table = max(tables, key=len)
    source = table.source
    times = table.columns["time_s"]
    ran = np.isfinite(times)
    yield Fact(a.CONFIGS, float(len(table)), source)
    yield Fact(a.TIMED, float(ran.sum()), source)
    yield from _axes(table, times, ran)
    spills = table.columns["spills"]
    if np.isfinite(spills).any():
        yield Fact(a.SPILLING, float(np.mean(spills[np.isfinite(spills)] > 0)), source)
    if ran.any():
        best = int(np.nanargmin(times))
        words = ", ".join(f"{x} {table.columns[x][best]:.0f}" for x in table.meta["axes"])
        yield Fact(a.BEST, float(times[best]), source)
        yield Fact(a.BEST_CONFIG, words, source)
        yield Fact(a.SPREAD, float(np.nanmax(times) / times[best]), source)
    if "library_s" in table.meta:
        yield Fact(a.LIBRARY, float(table.meta["library_s"]), source)
    yield from _limits(evidence, table.meta.get("shape"), source)


def _axes(table: Table, times: np.ndarray[Any, Any], ran: np.ndarray[Any, Any]) -> Iterator[Item]:
    effects, fixed, edges, varied = [], [], [], 0
    for axis in table.meta["axes"]:
        column = table.columns[axis]
        values = np.unique(column[np.isfinite(column)])
        if len(values) < 2:
            fixed.append(f"{axis} {values[0]:.0f}" if len(values) else axis)
            continue
        varied += 1
        best = {v: float(np.min(times[ran & (column == v)])) for v in values if (ran & (column == v)).any()}
        if len(best) < 2:
            continue
        fastest = min(best, key=lambda v: best[v])
        if not best[fastest] > 0:
            continue
        effects.append((max(best.values()) / best[fastest], axis))
        ordered = sorted(best)
        neighbour = ordered[1] if fastest == ordered[0] else ordered[-2]
        if fastest in (ordered[0], ordered[-1]) and best[neighbour] > SAME * best[fastest]:
            edges.append(f"{axis} {fastest:.0f}")
    yield Fact(a.AXES_VARIED, float(varied), table.source)
    if fixed:
        yield Fact(a.AXES_FIXED, ", ".join(fixed), table.source)
    if edges:
        yield Fact(a.EDGES, ", ".join(edges), table.source)
    if effects:
        effect, axis = max(effects)
        yield Fact(a.AXIS, axis, table.source)
        yield Fact(a.AXIS_EFFECT, effect, table.source)


def _limits(evidence: Evidence, shape: Any, source: Source) -> Iterator[Item]:
    """A product M x K x N whose input is normalised or activated in the same kernel saves one write and one read of it."""
    if not (isinstance(shape, list) and len(shape) == 3 and all(isinstance(x, (int, float)) for x in shape)):
        return
    rows, columns, inner = (float(x) for x in shape)
    gpu = _card(evidence)
    if gpu is None:
        return
    saved_bytes = 2 * WIDTH * rows * inner
    yield Fact(a.FUSION_LIMIT, saved_bytes / gpu.achieved_byte_per_s, source, note=f"on {gpu.title}")
    yield Fact(a.PEAK_TIME, 2 * rows * columns * inner / gpu.peak("bf16"), source, note=f"on {gpu.title}")


def _card(evidence: Evidence) -> Gpu | None:
    facts = evidence.all(k.DEVICE)
    name = str(facts[0].value) if facts else evidence.text(stated.GPU)
    return (chip(name) if name else None) or find_gpu(USUAL_CARD)
