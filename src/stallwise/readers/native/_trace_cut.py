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
AFTER_LAST = 0.1  # of the recorded time: what a host does and waits for after its last launch
WORTH_KEEPING = 0.3  # of the recorded time; with less, a step is hardly whole


def trusted_part(timeline: Timeline) -> tuple[Timeline, str]:
    """The rows before the first launch whose kernel is missing, and a sentence; the host's alone when few launches have one."""
    calls = timeline.named(lambda n: bool(_P["launch"].search(n)), timeline.rows(Kind.RUNTIME))
    device = timeline.rows(*GPU_KINDS)
    host = np.ones(len(timeline), bool)
    host[device] = False
    if not len(calls):
        if not host.any() or not (timeline.devices or len(device)):
            return timeline, ""
        summary = f"no launch is before the cut, and {len(device):,} events of the device, which are not used"
        return _only(timeline, host), summary
    ids = timeline.correlation[calls]
    orphan = (ids == NO_ID) | ~np.isin(ids, timeline.correlation[device])
    # The first orphan of a lasting run of them: a lone one may be a launch that failed.
    lasting = np.flatnonzero(np.convolve(orphan, np.ones(8), "valid") >= 7) if len(orphan) >= 8 else np.array([0])
    complete = orphan.mean() <= USUAL_ORPHANS or not len(lasting)
    until_s = float(timeline.start_s[calls].max() if complete else timeline.start_s[calls[lasting[0]]])
    begin_s = float(timeline.start_s.min())
    seen = (until_s - begin_s) / (float(timeline.end_s[host].max()) - begin_s)
    if complete and seen > 1 - AFTER_LAST:
        return timeline, ""
    summary = f"of {len(calls):,} launches before the cut {int(orphan.sum()):,} have no kernel"
    if complete:
        summary = f"operators go on after the last of {len(calls):,} launches before the cut"
    if seen < WORTH_KEEPING:
        return _only(timeline, host), f"{summary}, so only the host's part is used"
    left = _only(timeline, timeline.end_s <= until_s)
    return left, f"{summary}; everything after {until_s * 1e3:.1f} ms was left out"


def _only(timeline: Timeline, keep: NDArray[np.bool_]) -> Timeline:
    per_row = {f.name for f in fields(timeline) if f.init and isinstance(getattr(timeline, f.name), np.ndarray)}
    kept = {f.name: getattr(timeline, f.name) for f in fields(timeline) if f.init}
    memory = timeline.memory
    if memory is not None:
        rows = keep[timeline.rows(Kind.MEMORY)]
        kept["memory"] = type(memory)(*(getattr(memory, f.name)[rows] for f in fields(memory)))
    kept |= {name: kept[name][keep] for name in per_row}
    return Timeline(**kept)
