"""What is left of a trace that ends too early.

Profilers write the host's events first and the device's after them, so a cut file can hold every launch and few of the
kernels. Read as it stands, it would show an idle GPU that never was. Only the part in which launches have their kernels
is worth anything.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from stallwise.evidence.timeline import GPU_KINDS, NO_ID, Kind, Timeline
from stallwise.readers._patterns import patterns

_P = patterns("trace")
USUAL_ORPHANS = 0.02  # launches without a kernel in whole traces: those in flight when recording stopped
WORTH_KEEPING = 0.3  # of the launches; with less, a step is hardly whole


def trusted_part(timeline: Timeline) -> tuple[Timeline | None, str]:
    """The rows before the first launch whose kernel is missing, and a sentence; None when too little is left."""
    calls = timeline.named(lambda n: bool(_P["launch"].search(n)), timeline.rows(Kind.RUNTIME))
    device = timeline.rows(*GPU_KINDS)
    if not len(calls):
        if timeline.devices and not len(device):
            return None, f"{len(timeline):,} host events and no device event are before the cut"
        return timeline, ""
    ids = timeline.correlation[calls]
    orphan = (ids == NO_ID) | ~np.isin(ids, timeline.correlation[device])
    if orphan.mean() <= USUAL_ORPHANS:
        return timeline, ""
    # The first orphan of a lasting run of them: a lone one may be a launch that failed.
    lasting = np.flatnonzero(np.convolve(orphan, np.ones(8), "valid") >= 7) if len(orphan) >= 8 else np.array([0])
    first = int(lasting[0]) if len(lasting) else len(orphan)
    summary = f"of {len(calls):,} launches before the cut {int(orphan.sum()):,} have no kernel"
    if first < WORTH_KEEPING * len(calls):
        return None, summary
    until_s = float(timeline.start_s[calls[first]]) if first < len(calls) else float("inf")
    keep = timeline.end_s <= until_s
    return _only(timeline, keep), f"{summary}; everything after {until_s * 1e3:.1f} ms was left out"


def _only(timeline: Timeline, keep: NDArray[np.bool_]) -> Timeline:
    per_row = {f.name for f in fields(timeline) if f.init and isinstance(getattr(timeline, f.name), np.ndarray)}
    kept = {f.name: getattr(timeline, f.name) for f in fields(timeline) if f.init}
    memory = timeline.memory
    if memory is not None:
        rows = keep[timeline.rows(Kind.MEMORY)]
        kept["memory"] = type(memory)(*(getattr(memory, f.name)[rows] for f in fields(memory)))
    kept |= {name: kept[name][keep] for name in per_row}
    return Timeline(**kept)
