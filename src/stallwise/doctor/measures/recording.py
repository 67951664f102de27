"""The recording as a whole: how much of it the steps cover, how long the device works in it, and what happens in it once.

A trace without device work is a profile of the host: its operators, calls and ranges by their own time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._operators import OperatorTree
from stallwise.doctor.measures._spans import Spans
from stallwise.doctor.measures._step_index import StepIndex, step_index
from stallwise.doctor.measures._vocabulary import Work
from stallwise.evidence.catalog import recording as r
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import Fact, Table
from stallwise.evidence.profile import Spent, profile_table
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.timeline import Kind, Timeline

HOST_KINDS = (Kind.CPU_OP, Kind.RUNTIME, Kind.PYTHON, Kind.ANNOTATION)
MOST_NAMED, LONGEST_NAME = 6, 48
MOST_OF_SPAN, LEAST_FOREIGN = 0.9, 0.02  # of the recording
MATRIX = (Work.GEMM, Work.CONV, Work.ATTENTION)


def from_timeline(timeline: Timeline) -> Iterator[Item]:
    """Facts of the whole recording, whatever its steps are."""
    index = step_index(timeline)
    if not len(index.view):
        yield from _of_host(timeline)
        return
    view = index.view
    times = (
        timeline.recorded or timeline
    )  # the file's own times, the profiler's cost included: it is the file that is told of
    start, end = times.start_s[view.work], times.end_s[view.work]
    first_s, last_s, begin_s = float(start.min()), float(end.max()), float(times.start_s.min())
    length_s = float(times.end_s.max()) - begin_s
    busy_s = Spans.of(start, end).total_s
    steps_s = float(index.windows.device[-1] - index.windows.device[0])
    sums = {
        r.LENGTH: length_s,
        r.STEPS_SHARE: min(steps_s / length_s, 1.0) if length_s > 0 else 1.0,
        r.DEVICE_SPAN: last_s - first_s,
        r.BUSY_SHARE: busy_s / (last_s - first_s) if last_s > first_s else 1.0,
        r.LEAD_IN: first_s - begin_s,
        r.KERNELS: float(view.is_kernel.sum()),
        r.KERNEL_TIME: float(view.duration[view.is_kernel].sum()),
    }
    if view.gpu is None and view.gpu_name:
        yield Fact(r.UNKNOWN_CARD, view.gpu_name, timeline.source, timeline.scope)
    for quantity, value in (sums | _copies(index)).items():
        yield Fact(quantity, value, timeline.source, timeline.scope)


def _copies(index: StepIndex) -> dict[Quantity, float]:
    """Copies over the bus: in all, and what comes before the first matrix product, which is the model's upload."""
    view, t = index.view, index.timeline
    crosses = index.purposes.crosses_bus
    size = np.nan_to_num(t.size_bytes[view.work])
    matrix = np.isin(index.purposes.work, [int(w) for w in MATRIX])
    found: dict[Quantity, float] = {
        r.COPY_TIME: float(view.duration[crosses].sum()),
        r.COPY_BYTES: float(size[crosses].sum()),
    }
    found[r.READ_BACK_TIME] = float(view.duration[index.purposes.to_host].sum())
    if matrix.any():
        before = crosses & (view.start < float(view.start[matrix].min()))
        found |= {r.UPLOAD_TIME: float(view.duration[before].sum()), r.UPLOAD_BYTES: float(size[before].sum())}
    return found


def _of_host(timeline: Timeline) -> Iterator[Table | Fact]:
    """Seconds by name without what each calls, on every thread."""
    rows = timeline.rows(*HOST_KINDS)
    if not len(rows):  # of no kind that is known: a foreign program's own spans
        rows = timeline.rows(Kind.OTHER)
    tree = OperatorTree.of(timeline, rows)
    if not len(tree):
        return
    held = timeline.duration_s[tree.row]
    own, code = tree.without_callees(held), timeline.name[tree.row]
    sums = [np.bincount(code, weights=w, minlength=len(timeline.names)) for w in (own, held, np.ones(len(code)))]
    names = timeline.names
    spent = [
        Spent(names[c], float(sums[0][c]), 0.0, float(sums[1][c]), float(sums[2][c])) for c in np.flatnonzero(sums[2])
    ]
    lanes = len(np.unique(timeline.lane[tree.row]))
    span_s = float(timeline.end_s.max() - timeline.start_s[0])
    spent_s = float(
        own.sum()
    )  # clocks of calls and operators differ a little, so parts may add up to more than the span
    yield profile_table(
        spent, timeline.source, of=_what(timeline, rows, lanes), host_s=max(span_s, spent_s) if lanes == 1 else spent_s,
        doing=_outermost(timeline, tree, held), limit=_limit(timeline, span_s), lacks="device", scope=timeline.scope,
    )  # fmt: skip
    yield from _first_calls(timeline, tree, own)


def _first_calls(timeline: Timeline, tree: OperatorTree, own: NDArray[np.float64]) -> Iterator[Fact]:
    """What the first call of each name takes over the usual later one, and the name where that is most."""
    code = timeline.name[tree.row]
    order = np.lexsort((timeline.start_s[tree.row], code))
    names, first, counts = np.unique(code[order], return_index=True, return_counts=True)
    excess = {
        int(name): float(own[order[at]] - np.median(own[order[at + 1 : at + count]]))
        for name, at, count in zip(names, first, counts, strict=True) if count > 1
    }  # fmt: skip
    if (total := sum(max(e, 0.0) for e in excess.values())) > 0:
        most = max(excess, key=lambda name: excess[name])
        yield Fact(r.FIRST_CALLS, total, timeline.source, timeline.scope, note=timeline.names[most])


def _limit(timeline: Timeline, span_s: float) -> str:
    """Beside operators, events of foreign categories may be an accelerator that nobody here knows: it is said, not guessed."""
    rows = timeline.rows(Kind.OTHER)
    rows = rows[timeline.duration_s[rows] < MOST_OF_SPAN * span_s]  # the profiler's own mark spans everything
    rows = rows[~np.array(["profiler" in name.lower() for name in timeline.names], bool)[timeline.name[rows]]]
    spent_s = float(timeline.duration_s[rows].sum())
    if spent_s < LEAST_FOREIGN * span_s or not len(timeline.rows(*HOST_KINDS)):
        return "no work of a device was recorded"
    longest = timeline.names[int(np.bincount(timeline.name[rows], weights=timeline.duration_s[rows]).argmax())]
    foreign = f"{len(rows):,} events of foreign categories, such as {longest[:LONGEST_NAME]}, take {spent_s:.3g} s"
    return f"no work of a known device was recorded; {foreign}"


def _outermost(timeline: Timeline, tree: OperatorTree, held: NDArray[np.float64]) -> dict[str, float]:
    """What the program itself calls, with all that it calls in turn: operators that no other operator called."""
    operator = timeline.kind[tree.row] == int(Kind.CPU_OP)
    called = (tree.parent >= 0) & operator[np.maximum(tree.parent, 0)]
    top = operator & ~called
    sums = np.bincount(timeline.name[tree.row][top], weights=held[top], minlength=len(timeline.names))
    longest = np.argsort(-sums)[:MOST_NAMED]
    return {timeline.names[code]: float(sums[code]) for code in longest.tolist() if sums[code] > 0}


def _what(timeline: Timeline, rows: NDArray[np.intp], lanes: int) -> str:
    kinds = timeline.kind[rows]
    what = "operators" if np.any(kinds == int(Kind.CPU_OP)) else "ranges"
    if np.all(kinds == int(Kind.OTHER)):
        what = "events of categories that no known accelerator writes"
    return what if lanes == 1 else f"{what} of {lanes} threads"
