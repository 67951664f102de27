"""Which layer leaves its range first, and what FP8 does to each layer at each context."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallwise.evidence.catalog import numerics as n
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Source, Table
from stallwise.physics.costs.fp8 import cheapest_repair

ORDER = 5
CLIPS = 1e-4  # of the values: a few in a million clip in any calibrated layer


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Facts of each table of layers."""
    for table in evidence.table("numerics.layers"):
        yield from _ranges(table)
        if np.isfinite(table.columns["calibrated"]).any() or np.isfinite(table.columns["saturated"]).any():
            yield from _fp8(table)


def _ranges(table: Table) -> Iterator[Item]:
    amax, layer, x = table.columns["amax"], table.columns["layer"], table.columns["x"]
    finite = np.isfinite(amax)
    if finite.any():
        best = int(np.flatnonzero(finite)[np.argmax(amax[finite])])
        yield Fact(n.AMAX, float(amax[best]), table.source)
        yield Fact(n.AMAX_LAYER, str(layer[best]), table.source)
    known = np.array([str(v) != "" for v in layer])
    bad = np.flatnonzero(~finite & known) if _has_amax(table) else np.array([], dtype=int)
    if len(bad):
        first = int(bad[np.argmin(np.nan_to_num(x[bad], nan=0.0))])
        yield Fact(n.BAD_LAYER, str(layer[first]), Source(table.source.file, f"layer {layer[first]}"))
        if np.isfinite(x[first]):
            yield Fact(n.BAD_STEP, float(x[first]), table.source)


def _has_amax(table: Table) -> bool:
    return bool(np.isfinite(table.columns["amax"]).any() or np.isinf(table.columns["amax"]).any())


def _fp8(table: Table) -> Iterator[Item]:
    c = table.columns
    over = c["amax"] / c["calibrated"]
    saturated = np.nan_to_num(c["saturated"], nan=0.0)
    counted = bool(np.isfinite(c["saturated"]).any())
    if not counted:
        saturated = np.where(over > 1.5, 1.0, 0.0) * CLIPS * 2  # only ranges are known
    hit = saturated > CLIPS
    if not hit.any():
        yield Fact(n.FP8_LAYERS_HIT, 0.0, table.source)
        return
    worst = int(
        np.argmax(np.where(np.isfinite(c["error"]), c["error"], 0.0) + (saturated if counted else np.nan_to_num(over)))
    )
    layer = str(c["layer"][worst])
    mine = np.array([str(v) == layer for v in c["layer"]])
    contexts = np.sort(c["x"][mine & hit & np.isfinite(c["x"])])
    needed = float(np.nanmax(c["amax"][mine]))
    source = Source(table.source.file, f"layer {layer}")
    yield Fact(n.FP8_LAYER, layer, source)
    if counted:
        yield Fact(n.FP8_SATURATED, float(saturated[worst]), source)
    yield Fact(n.FP8_LAYERS_HIT, float(len({str(v) for v in c["layer"][hit]})), source)
    yield Fact(n.FP8_NEEDED_AMAX, needed, source)
    if np.isfinite(over[worst]):
        yield Fact(n.FP8_OVER_RANGE, float(over[worst]), source)
    if len(contexts):
        yield Fact(n.FP8_CONTEXTS, ", ".join(f"{v:,.0f}" for v in contexts), source)
        yield Fact(n.FP8_FROM, float(contexts[0]), source)
    errors = c["error"]
    if np.isfinite(errors[worst]):
        yield Fact(n.FP8_ERROR, float(errors[worst]), source)
        yield Fact(n.FP8_USUAL_ERROR, float(np.nanmedian(errors[~hit])) if (~hit).any() else 0.0, source)
    usual = float(np.nanmin(c["amax"][mine]))
    yield Fact(n.FP8_REPAIR, cheapest_repair(needed, usual, grows=bool(len(contexts)) and needed > 1.5 * usual), source)
